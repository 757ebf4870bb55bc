//! What `fillfactor` does: completions that write no index, and the WAL of a claim with its completion.

use idem_core::store::{Claiming, Finish, Owning};
use idem_core::{Fence, Ownership};

use super::postgres::Server;
use super::{Failed, Keys, completed, new_claim, written};

/// With so many in progress at a time: a page fills up with claims before the first of them grows by its answer.
const IN_PROGRESS: usize = 200;
const PAYMENTS: usize = 4000;

pub(super) async fn measure(server: &Server) -> Result<(), Failed> {
    println!("| fillfactor | HOT completions | WAL bytes of claim and completion | bytes of a row on the disk |");
    println!("| ---: | ---: | ---: | ---: |");
    let database = &server.database;
    // The last one is the schema's own.
    for factor in [100, 70, 30, 50] {
        database.run(format!("ALTER TABLE idem.idempotency_requests SET (fillfactor = {factor})")).await;
        server.empty().await;
        database.run("SELECT pg_stat_reset_single_table_counters('idem.idempotency_requests'::regclass)").await;
        let position = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let before = database.number(position).await;
        let store = server.store(8).await?;
        let mut keys = Keys::next().of(0);
        for _ in 0..PAYMENTS / IN_PROGRESS {
            let mut owners = Vec::new();
            for _ in 0..IN_PROGRESS {
                let claim = new_claim(&keys.next_key())?;
                store.claim(&claim).await?;
                owners.push(Ownership { scope: claim.scope, fence: Fence::FIRST, owner: claim.owner });
            }
            for owner in owners {
                written(store.finish(&owner, &Finish { closed: Vec::new(), resource: None, end: completed() }).await?)?;
            }
        }
        let wal = (database.number(position).await - before) / PAYMENTS as i64;
        store.close().await;
        let size = database.number("SELECT pg_table_size('idem.idempotency_requests')").await / PAYMENTS as i64;
        let hot = hot_of_100(server).await;
        println!("| {factor} | {hot} % | {wal} | {size} |");
    }
    Ok(())
}

/// A session tells its figures when it ends.
async fn hot_of_100(server: &Server) -> i64 {
    let table = "FROM pg_stat_user_tables WHERE relid = 'idem.idempotency_requests'::regclass";
    while server.database.number(format!("SELECT n_tup_upd {table}")).await < PAYMENTS as i64 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    server.database.number(format!("SELECT n_tup_hot_upd * 100 / n_tup_upd {table}")).await
}
