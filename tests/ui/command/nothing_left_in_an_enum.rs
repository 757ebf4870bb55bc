use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(operation = "ping", version = 1)]
enum Ping {
    Ping,
}

#[derive(IdempotentCommand)]
#[idem(operation = "pong", version = 1)]
enum Pong {
    Pong {
        #[idem(exclude)]
        trace_id: u64,
    },
}

#[derive(IdempotentCommand)]
#[idem(operation = "mark", version = 1)]
struct Mark {
    mark: std::marker::PhantomData<u64>,
}

// Two names tell two commands apart.
#[derive(IdempotentCommand)]
#[idem(operation = "change", version = 1)]
enum Change {
    Open,
    Close,
}

#[derive(IdempotentCommand)]
#[idem(operation = "meant", version = 1, allow_empty)]
enum Meant {
    Ping,
}

fn main() {}
