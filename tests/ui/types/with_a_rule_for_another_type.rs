use idem_core::canonical::{Elementwise, Shape, Shapes};
use idem_core::{Canonical, IdempotentCommand, Sink};

enum Cents {}

impl Elementwise for Cents {}

impl Canonical<Cents> for u64 {
    fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
        <u64 as Canonical>::write(self, sink);
    }

    fn shape(shapes: &mut Shapes) -> Shape {
        <u64 as Canonical>::shape(shapes)
    }
}

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(with = "Cents")]
    amount: Option<i64>,
}

fn main() {}
