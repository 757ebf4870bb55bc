//! `resolve`, `ask-again`, and both for many.

use std::collections::HashSet;

use idem_core::operator::{Resolved, Standing, Target};
use idem_core::{Engine, Fence, Record, Scope};
use serde_json::{Value, json};

use crate::args::{AskAgain, AskAgainAll, Bulk, Resolve, ResolveAll, VerdictArgs};
use crate::database::Database;
use crate::error::AdminError;
use crate::listed::Listed;
use crate::show::{self, Line};

pub(crate) async fn resolve(database: &Database, asked: &Resolve, as_json: bool) -> Result<(), AdminError> {
    let resolution = asked.verdict.resolution()?;
    if asked.verdict.may_repeat_an_effect() && !asked.yes {
        let reason =
            "if it is wrong an effect is made twice, by the next attempt or by its client: confirm it with --yes";
        return Err(AdminError::Unconfirmed(reason.to_owned()));
    }
    let scope = asked.which.scope();
    let engine = set_up(database, &asked.verdict).await?;
    asked.verdict.fits(&engine, scope.operation())?;
    let mut target = Target::from(scope);
    if let Some(fence) = asked.fence {
        target = target.at_fence(Fence::from_stored(fence));
    }
    engine.resolve(target, &resolution, &asked.because.actor, &asked.because.reason).await?;
    tell_done(1, as_json);
    Ok(())
}

pub(crate) async fn ask_again(database: &Database, asked: &AskAgain, as_json: bool) -> Result<(), AdminError> {
    let engine = database.engine().await?;
    engine.ask_again(asked.which.scope(), &asked.because.actor, &asked.because.reason).await?;
    tell_done(1, as_json);
    Ok(())
}

pub(crate) async fn resolve_all(database: &Database, asked: &ResolveAll, as_json: bool) -> Result<(), AdminError> {
    let (bulk, because) = (&asked.bulk, &asked.because);
    let resolution = asked.verdict.resolution()?;
    if bulk.yes && bulk.list.is_none() {
        let reason = "say with --list which records: the file that --dry-run --list wrote";
        return Err(AdminError::Unconfirmed(reason.to_owned()));
    }
    let engine = set_up(database, &asked.verdict).await?;
    let Some(confirmed) = confirmed(&engine, bulk, as_json).await? else { return Ok(()) };
    for (scope, _) in &confirmed.records {
        asked.verdict.fits(&engine, scope.operation())?;
    }
    let targets = confirmed.records.into_iter().map(|(_, target)| target);
    let resolved = engine.resolve_all(targets, &bulk.call, &resolution, &because.actor, &because.reason).await;
    tell_each(&resolved, &confirmed.left, as_json)
}

pub(crate) async fn ask_again_all(database: &Database, asked: &AskAgainAll, as_json: bool) -> Result<(), AdminError> {
    let engine = database.engine().await?;
    let Some(confirmed) = confirmed(&engine, &asked.bulk, as_json).await? else { return Ok(()) };
    let targets = confirmed.records.into_iter().map(|(_, target)| target);
    let asked_again = engine.ask_again_all(targets, &asked.because.actor, &asked.because.reason).await;
    tell_each(&asked_again, &confirmed.left, as_json)
}

async fn set_up(database: &Database, verdict: &VerdictArgs) -> Result<Engine, AdminError> {
    let settings = database.store().await?.settings().await?;
    database.built(|builder| verdict.set_up(builder, &settings)).await
}

/// What a bulk is about.
struct Confirmed {
    records: Vec<(Scope, Target)>,
    /// Those that fit and were not shown, since they were parked later for instance: nobody has looked at them.
    left: Vec<Scope>,
}

/// The records of a bulk, where it is confirmed; a dry run shows them.
async fn confirmed(engine: &Engine, bulk: &Bulk, as_json: bool) -> Result<Option<Confirmed>, AdminError> {
    if !bulk.dry_run && !bulk.yes {
        let reason = "see with --dry-run which records these are, then confirm with --yes";
        return Err(AdminError::Unconfirmed(reason.to_owned()));
    }
    let search = bulk.filter.search(Some(Standing::Parked), Some(&bulk.call));
    if let (true, Some(file)) = (bulk.yes, &bulk.list) {
        let records = Listed::read(bulk, file)?.targets()?;
        let shown: HashSet<_> = records.iter().map(|(scope, _)| scope).collect();
        // Beside those that were shown, as many that were not.
        let limit = bulk.limit.saturating_add(u32::try_from(records.len()).unwrap_or(u32::MAX));
        let found = engine.search(&search, None, limit).await?.found.into_iter().map(|found| found.record.scope);
        let left = found.filter(|scope| !shown.contains(scope)).collect();
        return Ok(Some(Confirmed { records, left }));
    }
    let page = engine.search(&search, None, bulk.limit).await?;
    if bulk.yes {
        let target = |record: &Record| (record.scope.clone(), Target::from(record));
        let records = page.found.iter().map(|found| target(&found.record)).collect();
        return Ok(Some(Confirmed { records, left: Vec::new() }));
    }
    if let Some(file) = &bulk.list {
        Listed::of(&bulk.call, page.found.iter().map(|found| &found.record)).write(file)?;
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

/// Which were refused, and why, and which were left; the others are done.
fn tell_each(resolved: &Resolved, left: &[Scope], as_json: bool) -> Result<(), AdminError> {
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
        let name = |scope: &Scope| {
            json!({
                "tenant": scope.tenant().as_str(), "operation": scope.operation(), "key": scope.key().as_str(),
            })
        };
        let left: Value = left.iter().map(name).collect();
        println!("{}", json!({ "decided": done, "refused": refused, "left": left }));
    } else {
        tell_done(done, false);
        for (scope, error) in &refused {
            let (tenant, operation, key) = (scope.tenant().as_str(), scope.operation(), scope.key().as_str());
            println!("refused: {tenant} {operation} {key}: {error} [{}]", error.code());
        }
        for scope in left {
            let (tenant, operation, key) = (scope.tenant().as_str(), scope.operation(), scope.key().as_str());
            println!("left: {tenant} {operation} {key}: it is not in the list");
        }
    }
    match refused.len() {
        0 => Ok(()),
        refused => Err(AdminError::SomeRefused { refused, all: resolved.len() }),
    }
}
