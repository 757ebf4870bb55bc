//! What a person found out, from the command line.

use idem_core::operator::{Resolution, rebuilt};
use idem_core::{Engine, EngineBuilder, Replay, Reply, Rules};
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
        for call in &self.against_evidence {
            resolution = resolution.against_evidence(call);
        }
        if let Some(resource) = &self.resource {
            let (kind, id) = resource.split_once('=').ok_or_else(|| wrong("--resource", "write it as `type=id`"))?;
            resolution = resolution.makes(kind, id);
        }
        Ok(resolution)
    }

    /// Whether somebody's money moves twice if it is wrong: it is made again, or its client is told that it may.
    pub(crate) fn may_repeat_an_effect(&self) -> bool {
        matches!(self.end, End::NeverHappened | End::Refused)
            || !(self.not_made.is_empty() && self.rejected.is_empty() && self.against_evidence.is_empty())
    }

    /// An answer that is not kept must not be given: whoever gives it would take it for what clients get.
    pub(crate) fn fits(&self, engine: &Engine, operation: &str) -> Result<(), AdminError> {
        let is_rebuilt = matches!(engine.rules_of(operation).replay, Replay::Rebuilt { .. });
        let has_more = self.body_file.is_some() || !self.headers.is_empty();
        if self.end == End::Completed && is_rebuilt && has_more {
            let reason =
                format!("answers of `{operation}` are written anew and not kept: say --status, and --resource");
            return Err(wrong("--body-file", reason));
        }
        Ok(())
    }

    /// How the answer is kept. The application's own rules are not in the database, but for whose answers are not.
    pub(crate) fn set_up(&self, builder: EngineBuilder, settings: &[(String, String)]) -> EngineBuilder {
        let rules = Rules {
            window: self.window,
            metadata_retention: self.metadata_retention,
            body_cap: usize::MAX,
            ..Rules::default()
        };
        let mut builder = builder.rules(rules.clone());
        for (operation, schema_version) in rebuilt(settings) {
            let rules = Rules { replay: Replay::Rebuilt { schema_version }, ..rules.clone() };
            builder = match &*operation {
                "*" => builder.rules(rules),
                _ => builder.operation_named(operation, rules),
            };
        }
        let names = self.headers.iter().filter_map(|header| header.split_once(':'));
        names.fold(builder, |builder, (name, _)| builder.keep_header(name.trim()))
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
