//! The JSON of a problem.

use std::time::SystemTime;

use idem_core::ResourceRef;
use serde::Serialize;

use crate::problem::Problem;

pub(super) fn json(problem: &Problem) -> Vec<u8> {
    let code = problem.code.as_str();
    let document = Document {
        r#type: format!("urn:idem:problem:{code}"),
        title: problem.code.title(),
        status: problem.status.as_u16(),
        detail: &problem.detail,
        code,
        next: problem.code.next().as_str(),
        safe_new_key: problem.original.as_ref().map(|original| original.safe_new_key),
        resource: problem.resource.as_ref().map(Resource::of),
        original: problem.original.as_ref().map(|original| First {
            state: original.state.as_str(),
            created_at: rfc3339(original.created_at),
            resource: original.resource.as_ref().map(Resource::of),
            status: original.status,
        }),
    };
    serde_json::to_vec(&document).expect("a struct of texts and numbers always serialises")
}

#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    safe_new_key: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Resource<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<First<'a>>,
}

#[derive(Serialize)]
struct Resource<'a> {
    r#type: &'a str,
    id: &'a str,
}

impl<'a> Resource<'a> {
    fn of(resource: &'a ResourceRef) -> Self {
        Self { r#type: &resource.kind, id: &resource.id }
    }
}

#[derive(Serialize)]
struct First<'a> {
    state: &'a str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Resource<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

/// RFC 3339, from the fixed columns of an HTTP date (`Sun, 06 Nov 1994 08:49:37 GMT`).
fn rfc3339(time: SystemTime) -> String {
    let date = httpdate::fmt_http_date(time);
    let month = MONTHS.iter().position(|month| *month == &date[8..11]).unwrap_or_default() + 1;
    format!("{}-{month:02}-{}T{}Z", &date[12..16], &date[5..7], &date[17..25])
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_rfc_3339() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(rfc3339(at(784_111_777)), "1994-11-06T08:49:37Z");
        assert_eq!(rfc3339(at(1_798_675_199)), "2026-12-30T23:59:59Z");
    }
}
