//! The shipped decision table and transitions, explored.
//!
//! The harness owns the world: clients, processes, the database's row, providers, the clock. Every decision and every
//! change of the record is made by the functions that idem ships.

mod asker;
mod config;
mod deploys;
mod exploring;
mod heal;
mod lives;
mod mutations;
mod owner;
mod properties;
mod provider;
mod request;
mod rig;
mod steps;
mod table;
mod world;
