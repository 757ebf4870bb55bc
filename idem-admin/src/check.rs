//! `migrate` and `check`.

use std::collections::BTreeMap;

use idem_core::operator::{Search, Standing};
use serde_json::{Map, Value, json};

use crate::args::Check;
use crate::database::Database;
use crate::error::AdminError;
use crate::show;

pub(crate) async fn migrate(database: &Database, as_json: bool) -> Result<(), AdminError> {
    database.migrate().await?;
    let version = database.schema_version().await?;
    if as_json {
        println!("{}", json!({ "schema": { "found": version.found, "needed": version.needed } }));
    } else {
        println!("The schema is at version {}.", version.found);
    }
    Ok(())
}

pub(crate) async fn run(database: &Database, asked: &Check, as_json: bool) -> Result<(), AdminError> {
    let version = database.schema_version().await?;
    let mut seen = json!({
        "database": database.to_string(),
        "schema": { "found": version.found, "needed": version.needed },
    });
    let mut wrong = Vec::new();
    if version.found < version.needed {
        wrong.push(format!("the schema is at version {} of {}: run `migrate`", version.found, version.needed));
    } else {
        look(database, asked, &mut seen, &mut wrong).await?;
    }
    seen["in_order"] = json!(wrong.is_empty());
    if as_json {
        println!("{seen}");
    } else {
        let mut table = show::empty_table(["", ""]);
        for (name, value) in seen.as_object().into_iter().flatten() {
            table.add_row([name.clone(), words(value)]);
        }
        println!("{table}");
    }
    if wrong.is_empty() { Ok(()) } else { Err(AdminError::NotInOrder(wrong.join("; "))) }
}

/// What can be seen only of a schema that this release knows.
async fn look(database: &Database, asked: &Check, seen: &mut Value, wrong: &mut Vec<String>) -> Result<(), AdminError> {
    let store = database.store().await?;
    let settings = store.settings().await?;
    seen["settings"] = Value::Object(settings.into_iter().map(|(name, value)| (name, json!(value))).collect());
    let silence = store.silence().await?;
    seen["silence_seconds"] = json!(silence.map(|silence| silence.as_secs()));
    match silence {
        None => wrong.push("no worker has ever given a sign of life".to_owned()),
        Some(silence) if silence > asked.silence => {
            wrong.push(format!("no worker has given a sign of life for {}", show::span(silence)));
        }
        Some(_) => {}
    }
    let engine = database.engine().await?;
    let mut unsettled: BTreeMap<Standing, (u64, u64)> = Standing::ALL.map(|standing| (standing, (0, 0))).into();
    let mut after = None;
    loop {
        let page = engine.search(&Search::default(), after.as_ref(), PAGE).await?;
        for found in &page.found {
            let age = found.now.duration_since(found.record.created_at).unwrap_or_default().as_secs();
            if let Some((count, oldest)) = Standing::of(&found.record).and_then(|at| unsettled.get_mut(&at)) {
                (*count, *oldest) = (*count + 1, age.max(*oldest));
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let counted = |(standing, (count, oldest)): (Standing, (u64, u64))| {
        (standing.as_str().to_owned(), json!({ "records": count, "oldest_seconds": oldest }))
    };
    seen["unsettled"] = Value::Object(unsettled.into_iter().map(counted).collect::<Map<_, _>>());
    Ok(())
}

/// A value on a few lines.
fn words(value: &Value) -> String {
    match value {
        Value::Null => "never".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(members) => {
            let lines: Vec<_> = members.iter().map(|(name, value)| format!("{name}: {}", words(value))).collect();
            lines.join(if members.values().any(Value::is_object) { "\n" } else { ", " })
        }
        value => value.to_string(),
    }
}

/// Records counted at once.
const PAGE: u32 = 1000;
