//! The claim protocol: the decision table, the engine over a store, the heartbeat.

mod checkpoints;
mod clocks;
mod decision;
mod deliveries;
mod endings;
mod engine;
mod events;
mod heartbeat;
mod identity;
mod outage;
mod provider;
mod recovery;
mod settling;
mod traces;
