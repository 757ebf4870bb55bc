//! What a client sees, over real sockets.

mod bench;
mod codes;
mod command;
mod configuration;
mod ends;
mod extract;
mod hangup;
mod key;
mod local;
mod replay;
mod rivals;
mod scope;
