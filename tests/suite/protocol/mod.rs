//! The claim protocol: the decision table, the engine over a store, the heartbeat.

mod decision;
mod engine;
mod heartbeat;
mod recovery;
mod settling;
