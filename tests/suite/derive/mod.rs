//! The derive on the structs that people have, under the rules that their crates have.

mod catalogue;
mod examples;
mod generics;
mod hygiene;
mod shapes;
mod size;
mod wire;
