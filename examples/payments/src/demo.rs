//! Every kind of second request, over real HTTP, and what it got.

mod child;
mod client;
mod concurrent;
mod crash;
mod different;
mod events;
mod outage;
mod promises;
mod report;
mod spelling;
mod stage;
mod transfer;

use std::path::Path;

pub use report::Report;
use stage::Stage;

type Error = Box<dyn std::error::Error>;

/// Runs the demo on services of its own, which leave nothing behind. `program` is this very program: the services that
/// die in the demo are processes of their own.
///
/// # Errors
/// Whatever keeps a request from being sent; what a request got is in the report.
pub async fn run(program: &Path) -> Result<Report, Error> {
    let folder = tempfile::tempdir()?;
    let stage = Stage::open(program, folder.path()).await?;
    let report = play(&stage).await;
    stage.close().await;
    folder.close()?;
    report
}

/// Plays every scene, one after the other.
async fn play(stage: &Stage) -> Result<Report, Error> {
    let client = &stage.client;
    Ok(Report::of(vec![
        spelling::replay(client).await?,
        spelling::other_spelling(client).await?,
        spelling::absent_default(client).await?,
        different::other_amount(client).await?,
        different::third_decimal(client).await?,
        different::fractional_number(client).await?,
        different::malformed_then_right(client).await?,
        different::another_tenant(client).await?,
        concurrent::concurrent_pair(client).await?,
        concurrent::hang_up(client).await?,
        outage::lost_answer(client).await?,
        outage::time_out(stage).await?,
        outage::unavailable(client).await?,
        outage::unreachable(client).await?,
        outage::declined(client).await?,
        transfer::second_call_unknown(client).await?,
        crash::client_comes_back(stage).await?,
        crash::nobody_comes_back(stage).await?,
        promises::overtaken_question(stage).await?,
        promises::lost_request(stage).await?,
        promises::webhook(stage).await?,
        promises::operator(stage).await?,
        events::delivered_thrice(client).await?,
    ]))
}
