//! The conformance suite: what every [`Store`](crate::Store) must do, as behaviours that can be run on yours.
//!
//! ```
//! use idem_core::MemoryStore;
//!
//! fn block_on(test: impl Future<Output = ()>) {
//!     futures_executor::block_on(test); // or a runtime's
//! }
//!
//! // One #[test] for each behaviour. The store comes with whatever must live as long as it, a directory for instance.
//! idem_core::conformance!(block_on, async { (MemoryStore::new(), ()) });
//! ```
//!
//! Each behaviour uses scopes that nobody used before, so that stores of one test run may share a database. Leases are
//! short and real; nothing is said of how fast a store is.

pub mod calls;
mod case;
pub mod claiming;
pub mod content;
pub mod finding;
pub mod keeping;
pub mod listing;
pub mod owning;
pub mod recovering;
pub mod sweeping;
pub mod taking_over;
pub mod tending;

pub(crate) use case::*;

/// Makes one `#[test]` for each behaviour that a store must have.
///
/// The first argument is a function that runs a future to its end, the second an async block that gives the store and
/// what must live as long as it, as a pair.
#[macro_export]
macro_rules! conformance {
    ($block_on:path, $store:expr) => {
        $crate::conformance! { @each $block_on, $store,
            claiming {
                a_first_claim_inserts
                a_second_claim_finds_the_record_unchanged
                a_claim_of_another_command_changes_no_record
                a_claim_sent_again_finds_its_own_token
                of_concurrent_claims_one_inserts
                keys_are_compared_byte_by_byte
                tenants_are_compared_byte_by_byte
                one_key_serves_two_operations_and_two_tenants
                the_longest_names_are_kept
                form_and_version_of_the_hash_are_kept
                a_span_may_be_without_end
                times_read_back_as_they_were_answered
                a_part_of_a_tick_is_cut
            }
            taking_over {
                a_lease_that_is_over_is_taken_over
                a_live_lease_is_not_taken_over
                a_record_that_was_written_since_is_not_taken_over
                a_record_of_the_keys_next_life_is_not_taken_over
                an_announcement_made_after_the_decision_wins
                of_announcement_and_take_over_one_wins
                a_record_under_another_fence_is_not_taken_over
                a_record_of_another_command_is_not_taken_over
                a_record_of_another_status_is_not_taken_over
                a_take_over_sent_again_finds_its_own_token
                of_rivals_one_takes_over
                of_rivals_one_retries
                nothing_is_not_taken_over
                what_is_settled_is_not_taken_over
                a_failed_record_that_is_due_is_taken_over
                a_failed_record_that_is_not_due_is_not_taken_over
            }
            tending {
                a_lease_that_is_over_is_stranded
                a_lease_that_is_over_is_released
                a_lease_that_is_over_is_parked
                a_failed_record_is_stranded
                a_failed_record_is_parked
                an_unknown_record_is_parked
                a_record_that_is_asked_about_is_not_parked
                a_live_lease_is_not_tended
                a_record_that_was_written_since_is_not_tended
                only_what_the_protocol_has_becomes_of_a_record
                of_rivals_one_tends
                of_a_worker_and_a_client_one_wins
                after_tending_the_late_owner_writes_nothing
            }
            owning {
                a_beat_renews_the_lease
                a_beat_tells_of_each_claim_in_order
                a_beat_renews_many_claims
                a_look_at_owners_renews_nothing
                a_late_owner_writes_nothing
                an_overrun_lease_without_rival_completes
                an_overrun_lease_without_rival_goes_on
                another_token_writes_nothing
                another_fence_writes_nothing
                nothing_has_no_owner
                a_step_renews_the_lease
                a_step_names_the_resource
                a_step_keeps_a_checkpoint
                completed_is_kept
                failed_replayable_is_kept
                failed_retryable_is_kept
                unknown_is_kept
                a_finish_sent_again_finds_its_own_end
                what_is_settled_is_not_written
                a_finish_names_the_resource
                a_retried_record_completes
            }
            calls {
                an_announcement_is_kept
                calls_keep_their_order
                a_call_opened_twice_keeps_its_date
                a_step_sent_again_announces_once
                a_withdrawn_call_opens_again
                a_closed_call_stays_closed
                an_outcome_closes_only_its_call
                outcomes_are_kept_byte_by_byte
                a_finish_keeps_outcomes
                a_call_closed_and_opened_in_one_step_is_open
                calls_survive_a_take_over
                a_refused_write_changes_no_call
                records_do_not_share_calls
            }
            recovering {
                an_unknown_record_is_taken_to_ask
                only_an_unknown_record_that_is_due_is_asked_about
                an_unknown_record_is_taken_only_as_it_was_seen
                after_its_lease_another_worker_asks
                an_answer_after_the_lease_without_rival_counts
                of_rivals_one_asks
                an_applied_answer_completes
                a_rejected_or_withdrawn_answer_ends_it
                still_unknown_is_asked_again
                a_parked_record_is_still_asked_about
                only_who_asks_answers
                an_answer_sent_again_finds_its_own_end
                a_parked_record_is_resolved
                a_parked_record_is_asked_about_at_once
                only_a_parked_record_is_resolved
                after_a_verdict_the_worker_writes_nothing
            }
            finding {
                what_nobody_cares_for_is_due
                what_is_cared_for_or_settled_is_not_due
                a_grace_is_left_to_clients
                due_records_come_in_pages_and_in_order
                evidence_is_kept
                evidence_about_nothing_is_not_kept
                evidence_makes_an_unknown_record_due
                evidence_changes_no_other_record
                evidence_disturbs_nobody_who_asks
                a_look_changes_nothing
            }
            listing {
                what_is_not_settled_is_listed
                what_is_settled_is_not_listed
                the_unsettled_come_in_pages_and_in_order
                a_list_changes_nothing
                the_longest_waits_are_told
            }
            sweeping {
                after_the_window_a_record_expires
                within_the_window_nothing_is_swept
                what_is_not_settled_is_never_swept
                an_open_call_does_not_keep_an_answer
                a_body_goes_before_its_window_is_over
                after_its_metadata_a_record_is_gone
                a_tombstone_stays_unless_purging_it_is_chosen
                metadata_outlives_the_window
                an_expired_record_is_not_written
                a_round_is_bounded
                many_sweep_at_once
                of_a_retry_and_a_sweeper_one_wins
                of_a_claim_and_a_purge_nothing_is_lost
            }
            keeping {
                contracts_are_kept_in_order
                a_contract_has_one_place
                of_rivals_one_adds_a_contract
                a_setting_is_settled_once
                settings_are_listed_by_name
                a_sign_of_life_is_seen
                the_audit_is_kept_in_order
            }
            content {
                bodies_are_kept_byte_by_byte
                no_body_is_not_an_empty_body
                headers_are_kept_byte_by_byte
                every_status_code_is_kept
            }
        }
    };
    (@each $block_on:path, $store:expr, $($module:ident { $($behaviour:ident)+ })+) => {
        $($(
            #[test]
            fn $behaviour() {
                $block_on(async {
                    let (store, _lives_as_long) = $store.await;
                    $crate::testing::$module::$behaviour(&store).await;
                });
            }
        )+)+
    };
}
