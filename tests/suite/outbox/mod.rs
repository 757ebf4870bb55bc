//! Events that leave with business rows, and messages that have one effect: the same promises on both databases. One
//! joins by saying what its rows are, [`Place`].

// All of it is test; clippy sees that only of functions marked as one.
#![allow(clippy::unwrap_used)]

mod appending;
mod broker;
mod claims;
mod cleaning;
mod codes;
mod dead;
mod inbox;
mod order;
mod postgres;
mod relaying;
mod running;
mod sqlite;
mod webhooks;

use std::time::Duration;

use idem_core::store::TxStore;
use idem_sqlx::Tables;
use idem_sqlx::outbox::{self, Appended, Event, OutboxStore, Relay, RelayOptions};
use sqlx::Transaction;

use broker::Broker;

/// An application's rows and idem's tables in one database.
trait Place: Sized + Sync {
    type Db: Tables;
    type Store: OutboxStore + TxStore<Tx = Transaction<'static, Self::Db>>;

    /// Where idem's tables are.
    const SCHEMA: &'static str;
    /// An instant before all others, as its columns have it.
    const PAST: &'static str;
    /// How a query locks what it reads, where that is needed.
    const LOCK: &'static str;

    /// A fresh database.
    async fn fresh() -> Self;

    fn store(&self) -> &Self::Store;

    /// A transaction of the application's own, as it would begin one.
    async fn begin(&self) -> Tx<Self>;

    /// One business row more.
    async fn insert(tx: &mut Tx<Self>, row: &str) -> Result<(), sqlx::Error>;

    /// Sees to it that its commit fails.
    async fn doom(tx: &mut Tx<Self>);

    /// Runs statements, as an operator would.
    async fn run(&self, sql: String);

    /// The one number that a statement gives.
    async fn number(&self, sql: String) -> i64;

    /// The texts that a statement gives.
    async fn texts(&self, sql: String) -> Vec<String>;

    async fn rows(&self) -> Vec<String> {
        self.texts("SELECT name FROM rows ORDER BY name".to_owned()).await
    }

    /// How many rows a table of idem's has, of those.
    async fn count(&self, table_and_more: &str) -> i64 {
        self.number(format!("SELECT count(*) FROM {}idempotency_{table_and_more}", Self::SCHEMA)).await
    }

    /// Pauses are over, and so is every lease: the relays that had them are dead to the others.
    async fn hasten(&self) {
        let (table, past, lock) = (format!("{}idempotency_outbox", Self::SCHEMA), Self::PAST, Self::LOCK);
        // In the order in which a relay writes them: neither is given up for the other.
        let waiting = format!("SELECT event_no FROM {table} WHERE state = 'waiting' ORDER BY event_no {lock}");
        self.run(format!("UPDATE {table} SET due_at = {past} WHERE state = 'waiting' AND event_no IN ({waiting})"))
            .await;
    }

    /// Appends these in one transaction: `(id, key)`.
    async fn append(&self, events: &[(&str, &str)]) {
        let mut tx = self.begin().await;
        for (id, key) in events {
            assert_eq!(outbox::append(&mut tx, &event(id, key)).await.unwrap(), Appended::New, "{id}");
        }
        tx.commit().await.unwrap();
    }

    fn relay(&self, broker: &Broker) -> Relay<Self::Store> {
        Relay::new(self.store().clone(), broker.clone()).options(patient())
    }
}

type Tx<P> = Transaction<'static, <P as Place>::Db>;

/// Makes one `#[tokio::test]` of each promise.
macro_rules! promises {
    ($place:ty: $($part:ident: $($promise:ident)+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                crate::outbox::$part::$promise::<$place>().await;
            }
        )+)+
    };
    ($place:ty) => {
        crate::outbox::promises! { $place:
            appending:
                an_event_is_committed_with_its_rows_or_not_at_all
                an_event_appended_again_is_there_once
                an_id_that_belongs_to_another_event_is_refused
                what_no_table_would_keep_is_refused
                transactions_that_append_to_one_key_commit_in_its_order;
            claims:
                a_handler_that_runs_again_appends_its_event_once
                an_event_has_one_id_in_every_attempt
                a_mail_that_was_sent_but_not_recorded_is_not_sent_again;
            relaying:
                each_event_goes_out_once_with_all_that_it_says
                no_more_are_taken_than_were_asked_for
                a_relay_that_dies_between_publishing_and_marking_leaves_one_effect
                a_relay_whose_lease_is_over_marks_nothing
                a_failing_event_holds_up_its_key_and_no_other
                a_publisher_that_does_not_answer_is_given_up
                a_publisher_that_panics_takes_nobody_with_it
                an_event_that_nobody_had_time_for_is_given_back
                a_key_that_never_runs_dry_does_not_keep_its_place
                spans_without_end_are_as_good_as_long_ones
                relays_share_what_there_is;
            order:
                each_key_keeps_its_order_through_failures_and_crashes;
            dead:
                a_refused_event_holds_up_its_key
                a_dead_letter_that_is_put_back_goes_out_before_the_later_ones
                a_dead_letter_that_is_skipped_lets_the_later_ones_go
                a_topic_is_put_back_at_once
                a_topic_of_a_thousand_is_put_back
                a_row_that_does_not_read_is_a_dead_letter
                an_event_that_fails_too_often_is_dead
                an_event_that_no_relay_comes_back_from_is_dead
                only_a_dead_letter_is_a_persons_to_decide;
            running:
                a_running_relay_publishes_what_comes
                a_relay_that_is_stopped_ends_what_it_has
                a_slow_key_holds_up_no_other;
            cleaning:
                only_what_is_out_for_long_enough_goes
                an_id_is_known_for_as_long_as_its_event_is_kept
                marks_go_after_their_time;
            inbox:
                a_message_whose_first_delivery_failed_is_acted_on_by_the_second
                a_message_delivered_three_times_has_one_effect_for_each_consumer
                two_deliveries_at_once_have_one_effect
                two_honest_events_that_say_the_same_are_two
                an_error_that_the_work_swallows_is_no_lost_message
                work_that_panics_leaves_no_mark
                a_commit_that_failed_leaves_no_mark
                what_was_written_before_a_second_delivery_is_taken_back;
            webhooks:
                a_webhook_has_one_effect
                the_window_is_as_wide_as_its_tolerance
                an_old_webhook_has_none
                a_webhook_from_the_future_has_none
                an_id_is_kept_for_as_long_as_its_webhook_is_taken
                a_replay_after_the_clean_up_is_refused_by_its_age
                evidence_is_kept_with_its_mark;
        }
    };
}
use promises;

/// What none of these options keeps from happening at once, a slow machine does not either.
fn patient() -> RelayOptions {
    let long = Duration::from_secs(60 * 60);
    RelayOptions {
        lease: long,
        poll: Duration::from_millis(5),
        backoff: long,
        backoff_cap: long,
        ..RelayOptions::default()
    }
}

fn event(id: &str, key: &str) -> Event {
    Event {
        id: id.to_owned(),
        topic: "payments".to_owned(),
        key: key.to_owned(),
        kind: "payment_paid".to_owned(),
        version: 1,
        payload: id.as_bytes().to_vec(),
    }
}
