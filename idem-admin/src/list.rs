//! `list`: what is not settled, a page at a time.

use std::time::{Duration, SystemTime};

use data_encoding::BASE64URL_NOPAD;
use idem_core::Scope;
use idem_core::operator::Standing;
use idem_core::store::Mark;
use serde_json::json;

use crate::args::List;
use crate::database::Database;
use crate::error::AdminError;
use crate::show::{self, Line};

pub(crate) async fn run(database: &Database, asked: &List, as_json: bool) -> Result<(), AdminError> {
    let after = asked.after.as_deref().map(read_mark).transpose()?;
    let search = asked.filter.search(asked.state.map(Standing::from), asked.call.as_deref());
    let page = database.engine().await?.search(&search, after.as_ref(), asked.limit).await?;
    let lines: Vec<_> = page.found.iter().map(|found| Line::of(found, false)).collect();
    let next = page.next.as_ref().map(write_mark);
    if as_json {
        println!("{}", json!({ "records": lines, "next": next }));
        return Ok(());
    }
    if lines.is_empty() {
        println!("Nothing of that kind.");
    } else {
        println!("{}", show::table(&lines));
    }
    if let Some(next) = next {
        println!("There may be more: --after {next}");
    }
    Ok(())
}

/// A place in the list, as one word that nobody need understand.
fn write_mark(mark: &Mark) -> String {
    let micros = mark.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
    let scope = &mark.scope;
    let parts =
        json!([micros.to_string(), scope.tenant().as_str(), scope.operation(), scope.key().as_str()]).to_string();
    BASE64URL_NOPAD.encode(parts.as_bytes())
}

fn read_mark(text: &str) -> Result<Mark, AdminError> {
    let read = || {
        let parts = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        let [micros, tenant, operation, key]: [String; 4] = serde_json::from_slice(&parts).ok()?;
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros.parse().ok()?))?;
        Some(Mark { at, scope: Scope::new(tenant.parse().ok()?, &operation, key.parse().ok()?) })
    };
    read().ok_or_else(|| AdminError::Argument {
        argument: "--after",
        reason: "it is not what a page ended with".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_back() {
        let scope = Scope::new("a:b\u{1f4b6}".parse().unwrap(), "pay/\"", "k:1.2".parse().unwrap());
        let mark = Mark { at: SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456), scope };
        assert_eq!(read_mark(&write_mark(&mark)).unwrap(), mark);
        for text in ["", "x", "W10", "____"] {
            assert_eq!(read_mark(text).unwrap_err().code(), "ADMIN_ARGUMENT", "{text}");
        }
    }
}
