//! Both sides on one server.

use std::sync::atomic::{AtomicI64, Ordering};

use idem_cluster::Database;
use idem_core::store::{Claiming, ClosedCall, Finish, Owning};
use idem_core::{CallState, Fence, Ownership};
use idem_sqlx::{PgOptions, PgStore};

use super::pgbench::{self, Scripts, with_parameters};
use super::{CALL, Failed, OUTCOME, Rates, Work, announcement, completed, fill_up, in_turns, new_claim, turn, written};
use crate::server;

pub(super) struct Server {
    pub(super) database: Database,
    sent: Sent,
}

/// What the store sends, as the server sees it.
struct Sent {
    claim: String,
    announcement: String,
    completion: String,
    completion_with_call: String,
}

impl Server {
    pub(super) async fn start() -> Result<Self, Failed> {
        let database = server::database().await;
        let sent = Sent::learn(&database).await?;
        Ok(Self { database, sent })
    }

    /// As many connections as callers, which is what pgbench has.
    pub(super) async fn store(&self, callers: usize) -> Result<PgStore, Failed> {
        Ok(PgStore::open(PgOptions::from(self.database.options()).connections(u32::try_from(callers)?)).await?)
    }

    pub(super) async fn empty(&self) {
        self.database.run("TRUNCATE idem.idempotency_requests, idem.idempotency_calls").await;
        self.database.run("CHECKPOINT").await;
    }

    pub(super) async fn compare(&self, work: Work, callers: usize, rounds: usize) -> Result<Rates, Failed> {
        let store = self.store(callers).await?;
        self.empty().await;
        if work == Work::Replays {
            fill_up(&store).await?;
        }
        let scripts = self.scripts(work)?;
        let by_pgbench = AtomicI64::new(0);
        let rates = in_turns(
            rounds,
            async || turn(&store, work, callers).await,
            async || {
                let ran = scripts.run(callers)?;
                by_pgbench.fetch_add(ran.transactions, Ordering::Relaxed);
                Ok(ran.a_second)
            },
        )
        .await?;
        store.close().await;
        self.check(work, by_pgbench.into_inner()).await?;
        Ok(rates)
    }

    /// pgbench counts a transaction also where an UPDATE found no row.
    async fn check(&self, work: Work, by_pgbench: i64) -> Result<(), Failed> {
        let state = match work {
            Work::Single => "status = 'in_progress'",
            Work::Cycle => "status = 'completed' AND first_call_at IS NULL",
            Work::Payment => {
                "status = 'completed' AND EXISTS (SELECT FROM idem.idempotency_calls c WHERE c.state = 'applied'
                    AND c.tenant_id = r.tenant_id AND c.operation_name = r.operation_name
                    AND c.idempotency_key = r.idempotency_key)"
            }
            Work::Replays => return Ok(()),
        };
        let table = "SELECT count(*) FROM idem.idempotency_requests r WHERE owner_token = '11111111-1111-4111-8111-111111111111'";
        let there = self.database.number(format!("{table} AND {state}")).await;
        if there == by_pgbench {
            Ok(())
        } else {
            Err(format!("pgbench told of {by_pgbench}, {there} are there").into())
        }
    }

    fn scripts(&self, work: Work) -> Result<Scripts, Failed> {
        let statement = |sent: &str, parameters: &[&str]| with_parameters(sent, &[&pgbench::KEY, parameters].concat());
        let claim = statement(&self.sent.claim, &pgbench::CLAIM);
        let mut scripts = Scripts::new(&self.database)?;
        match work {
            Work::Single => scripts.add(1, &[claim])?,
            Work::Cycle => scripts.add(1, &[claim, statement(&self.sent.completion, &pgbench::END)])?,
            Work::Payment => {
                let announcement = statement(&self.sent.announcement, &pgbench::STEP_WITH_CALLS);
                let completion = statement(&self.sent.completion_with_call, &pgbench::END_WITH_MORE);
                scripts.add(1, &[claim, announcement, completion])?;
            }
            Work::Replays => {
                scripts.add(9, &[READ.to_owned()])?;
                scripts.add(1, &[claim])?;
            }
        }
        Ok(scripts)
    }
}

impl Sent {
    /// Does each thing once on one connection, and asks the server what it was sent.
    async fn learn(database: &Database) -> Result<Self, Failed> {
        let store = PgStore::open(PgOptions::from(database.options()).connections(1)).await?;
        let mut sent = Vec::new();
        let closed = || vec![ClosedCall { name: CALL.into(), state: CallState::Applied(OUTCOME.into()) }];
        for closed in [Vec::new(), closed()] {
            let key = format!("learn-{}", closed.len());
            let claim = new_claim(&key)?;
            store.claim(&claim).await?;
            sent.push(last_statement(database).await?);
            let owner = Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner };
            written(store.step(&owner, &announcement(&key)).await?)?;
            sent.push(last_statement(database).await?);
            written(store.finish(&owner, &Finish { closed, resource: None, end: completed() }).await?)?;
            sent.push(last_statement(database).await?);
        }
        store.close().await;
        let Ok([claim, announcement, completion, _, _, completion_with_call]) = <[String; 6]>::try_from(sent) else {
            return Err("six statements were sent".into());
        };
        Ok(Self { claim, announcement, completion, completion_with_call })
    }
}

async fn last_statement(database: &Database) -> Result<String, Failed> {
    Ok(database
        .text(
            "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
                AND query LIKE '%idem.idempotency_requests%' ORDER BY state_change DESC LIMIT 1",
        )
        .await)
}

/// The least that a replay needs of the database.
const READ: &str = "SELECT status, request_hash, response_status, response_headers, response_body
FROM idem.idempotency_requests
WHERE tenant_id = :tenant::text AND operation_name = :operation::text AND idempotency_key = 'replay-' || :old::text";
