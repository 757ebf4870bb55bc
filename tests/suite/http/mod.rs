//! What a client sees, over real sockets.

mod bench;
mod catalogue;
mod check;
mod clients;
mod codes;
mod command;
mod commands;
mod configuration;
mod draft;
mod drain;
mod ends;
mod extract;
mod hangup;
mod key;
mod layers;
mod local;
mod openapi;
mod options;
mod rebuilt;
mod replay;
mod rivals;
mod scope;
mod shutdown;
mod table;
mod unkeyed;
