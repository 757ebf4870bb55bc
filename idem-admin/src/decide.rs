//! `resolve`, `ask-again`, and both for many.

use idem_core::operator::{Resolved, Standing};
use idem_core::{Engine, Scope};
use serde_json::{Value, json};

use crate::args::{AskAgain, AskAgainAll, Bulk, Resolve, ResolveAll};
use crate::database::Database;
use crate::error::AdminError;
use crate::show::{self, Line};

pub(crate) async fn resolve(database: &Database, asked: &Resolve, as_json: bool) -> Result<(), AdminError> {
    let resolution = asked.verdict.resolution()?;
    if asked.verdict.may_repeat_an_effect() && !asked.yes {
        let reason = "the next attempt makes again what you say never happened: confirm it with --yes";
        return Err(AdminError::Unconfirmed(reason.to_owned()));
    }
    let engine = database.built(|builder| asked.verdict.set_up(builder)).await?;
    engine.resolve(&asked.which.scope(), &resolution, &asked.because.actor, &asked.because.reason).await?;
    tell_done(1, as_json);
    Ok(())
}

pub(crate) async fn ask_again(database: &Database, asked: &AskAgain, as_json: bool) -> Result<(), AdminError> {
    let engine = database.engine().await?;
    engine.ask_again(&asked.which.scope(), &asked.because.actor, &asked.because.reason).await?;
    tell_done(1, as_json);
    Ok(())
}

pub(crate) async fn resolve_all(database: &Database, asked: &ResolveAll, as_json: bool) -> Result<(), AdminError> {
    let resolution = asked.verdict.resolution()?;
    let engine = database.built(|builder| asked.verdict.set_up(builder)).await?;
    let Some(scopes) = confirmed(&engine, &asked.bulk, as_json).await? else { return Ok(()) };
    let because = &asked.because;
    tell_each(&engine.resolve_all(scopes, &resolution, &because.actor, &because.reason).await, as_json)
}

pub(crate) async fn ask_again_all(database: &Database, asked: &AskAgainAll, as_json: bool) -> Result<(), AdminError> {
    let engine = database.engine().await?;
    let Some(scopes) = confirmed(&engine, &asked.bulk, as_json).await? else { return Ok(()) };
    tell_each(&engine.ask_again_all(scopes, &asked.because.actor, &asked.because.reason).await, as_json)
}

/// The records of a bulk, where it is confirmed; a dry run shows them.
async fn confirmed(engine: &Engine, bulk: &Bulk, as_json: bool) -> Result<Option<Vec<Scope>>, AdminError> {
    if !bulk.dry_run && !bulk.yes {
        let reason = "see with --dry-run which records these are, then confirm with --yes";
        return Err(AdminError::Unconfirmed(reason.to_owned()));
    }
    let search = bulk.filter.search(Some(Standing::Parked), Some(&bulk.call));
    let page = engine.search(&search, None, bulk.limit).await?;
    if bulk.yes {
        return Ok(Some(page.found.into_iter().map(|found| found.record.scope).collect()));
    }
    let lines: Vec<_> = page.found.iter().map(|found| Line::of(found, false)).collect();
    if as_json {
        println!("{}", json!({ "dry_run": true, "records": lines, "more": page.next.is_some() }));
        return Ok(None);
    }
    println!("{}", show::table(&lines));
    let more = if page.next.is_some() { "; there may be more, for another run" } else { "" };
    println!("It would be these {} records{more}. Nothing was changed.", lines.len());
    Ok(None)
}

fn tell_done(records: usize, as_json: bool) {
    if as_json {
        println!("{}", json!({ "decided": records }));
    } else {
        println!("Done, and in the audit: {records} record{}.", if records == 1 { "" } else { "s" });
    }
}

/// Which were refused, and why; the others are done.
fn tell_each(resolved: &Resolved, as_json: bool) -> Result<(), AdminError> {
    let refused: Vec<_> = resolved.iter().filter_map(|(scope, result)| Some((scope, result.as_ref().err()?))).collect();
    let done = resolved.len() - refused.len();
    if as_json {
        let refused: Value = refused
            .iter()
            .map(|(scope, error)| {
                json!({
                    "tenant": scope.tenant().as_str(), "operation": scope.operation(), "key": scope.key().as_str(),
                    "code": error.code(), "message": error.to_string(),
                })
            })
            .collect();
        println!("{}", json!({ "decided": done, "refused": refused }));
    } else {
        tell_done(done, false);
        for (scope, error) in &refused {
            let (tenant, operation, key) = (scope.tenant().as_str(), scope.operation(), scope.key().as_str());
            println!("refused: {tenant} {operation} {key}: {error} [{}]", error.code());
        }
    }
    match refused.len() {
        0 => Ok(()),
        refused => Err(AdminError::SomeRefused { refused, all: resolved.len() }),
    }
}
