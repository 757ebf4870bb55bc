//! What a person found out, from the command line.

use idem_core::operator::Resolution;
use idem_core::{EngineBuilder, Reply, Rules};
use serde_json::Value;

use crate::args::{End, VerdictArgs};
use crate::error::AdminError;

impl VerdictArgs {
    /// The verdict, whole.
    pub(crate) fn resolution(&self) -> Result<Resolution, AdminError> {
        let is_answer = self.status.is_some() || self.body_file.is_some() || !self.headers.is_empty();
        let mut resolution = match self.end {
            End::Completed => Resolution::completed(self.reply()?),
            End::Refused => Resolution::refused(self.reply()?),
            End::Resume | End::NeverHappened if is_answer => {
                return Err(wrong("--status", "an answer belongs to `completed` and `refused`"));
            }
            End::Resume => Resolution::resume(),
            End::NeverHappened => Resolution::never_happened_at_all(),
        };
        for said in &self.applied {
            let (call, outcome) = pair("--applied", said)?;
            let outcome: Value = serde_json::from_str(outcome).map_err(|error| wrong("--applied", error))?;
            resolution = resolution.applied(call, &outcome)?;
        }
        for said in &self.rejected {
            let (call, status) = pair("--rejected", said)?;
            let status = status.parse().map_err(|error| wrong("--rejected", error))?;
            if !(400..600).contains(&status) {
                return Err(wrong("--rejected", "a refusal's status is from 400 to 599"));
            }
            resolution = resolution.rejected(call, &Reply::status(status));
        }
        for call in &self.not_made {
            resolution = resolution.never_happened(call);
        }
        Ok(resolution)
    }

    /// Whether somebody's money moves twice if it is wrong.
    pub(crate) fn may_repeat_an_effect(&self) -> bool {
        self.end == End::NeverHappened || !self.not_made.is_empty()
    }

    /// How the answer is kept. The application's own rules are not in the database.
    pub(crate) fn set_up(&self, builder: EngineBuilder) -> EngineBuilder {
        let rules = Rules {
            window: self.window,
            metadata_retention: self.metadata_retention,
            body_cap: usize::MAX,
            ..Rules::default()
        };
        let names = self.headers.iter().filter_map(|header| header.split_once(':'));
        names.fold(builder.rules(rules), |builder, (name, _)| builder.keep_header(name.trim()))
    }

    fn reply(&self) -> Result<Reply, AdminError> {
        let status = self.status.ok_or_else(|| wrong("--status", "an end needs the answer that it gives"))?;
        let mut reply = Reply::status(status);
        for header in &self.headers {
            let (name, value) = header.split_once(':').ok_or_else(|| wrong("--header", "write it as `name: value`"))?;
            reply = reply.header(&name.trim().to_ascii_lowercase(), value.trim());
        }
        if let Some(file) = &self.body_file {
            reply = reply.body(std::fs::read(file).map_err(|error| wrong("--body-file", error))?);
        }
        Ok(reply)
    }
}

fn pair<'a>(argument: &'static str, said: &'a str) -> Result<(&'a str, &'a str), AdminError> {
    said.split_once('=').ok_or_else(|| wrong(argument, "write it as `call=…`"))
}

fn wrong(argument: &'static str, reason: impl ToString) -> AdminError {
    AdminError::Argument { argument, reason: reason.to_string() }
}
