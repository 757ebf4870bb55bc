//! The claim protocol: the decision table, the engine over a store, the heartbeat.

mod clocks;
mod decision;
mod engine;
mod events;
mod heartbeat;
mod recovery;
mod settling;
