//! Three versions, each of which knows the one before it, and what is kept of them.

use idem_core::{IdempotentCommand, Verdict};

#[derive(IdempotentCommand)]
#[idem(operation = "order", version = 1)]
struct OrderV1 {
    sku: String,
}

#[derive(IdempotentCommand)]
#[idem(operation = "order", version = 2, previous = OrderV1)]
struct OrderV2 {
    sku: String,
    count: u32,
}

#[derive(IdempotentCommand)]
#[idem(operation = "order", version = 3, previous = OrderV2)]
struct Order {
    skus: Vec<String>,
    count: u32,
}

impl TryFrom<&OrderV2> for OrderV1 {
    type Error = ();

    fn try_from(order: &OrderV2) -> Result<Self, ()> {
        (order.count == 1).then(|| Self { sku: order.sku.clone() }).ok_or(())
    }
}

impl From<OrderV1> for OrderV2 {
    fn from(old: OrderV1) -> Self {
        Self { sku: old.sku, count: 1 }
    }
}

impl TryFrom<&Order> for OrderV2 {
    type Error = &'static str;

    fn try_from(order: &Order) -> Result<Self, &'static str> {
        // Forgets all but the first.
        let sku = order.skus.first().cloned().ok_or("nothing ordered")?;
        Ok(Self { sku, count: order.count })
    }
}

impl From<OrderV2> for Order {
    fn from(old: OrderV2) -> Self {
        Self { skus: vec![old.sku], count: old.count }
    }
}

#[test]
fn a_chain_of_three_versions_is_compared_link_by_link() {
    let order = |skus: &[&str], count| Order { skus: skus.iter().map(|sku| (*sku).to_owned()).collect(), count };
    let first = OrderV1 { sku: "a".into() }.command_hash();
    let second = OrderV2 { sku: "a".into(), count: 1 }.command_hash();
    let third = order(&["a"], 1).command_hash();
    for stored in [first, second, third] {
        assert_eq!(order(&["a"], 1).verdict(&stored), Verdict::Same, "{stored}");
        assert_eq!(order(&["b"], 1).verdict(&stored), Verdict::Different, "{stored}");
        assert_eq!(order(&["a", "b"], 1).verdict(&stored), Verdict::Different, "{stored}");
        assert_eq!(order(&["a"], 2).verdict(&stored), Verdict::Different, "{stored}");
        assert_eq!(order(&[], 1).verdict(&stored), Verdict::Different, "{stored}");
    }
    assert_eq!((Order::OLDEST, OrderV2::OLDEST, OrderV1::OLDEST), (1, 1, 1));
    let versions = (0..5).filter_map(Order::contract_at).map(|contract| contract.version());
    assert_eq!(versions.collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(Order::contract_at(1), Some(OrderV1::contract()));
    assert_eq!(Order::contract_at(2), Some(OrderV2::contract()));
}

#[test]
fn a_version_that_is_kept_no_longer_is_retired() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "order", version = 3, previous = OrderV2, oldest = 2)]
    struct Order {
        sku: String,
        count: u32,
    }
    impl From<&Order> for OrderV2 {
        fn from(order: &Order) -> Self {
            Self { sku: order.sku.clone(), count: order.count }
        }
    }
    impl From<OrderV2> for Order {
        fn from(old: OrderV2) -> Self {
            Self { sku: old.sku, count: old.count }
        }
    }
    let order = Order { sku: "a".into(), count: 1 };
    assert_eq!(order.verdict(&OrderV2 { sku: "a".into(), count: 1 }.command_hash()), Verdict::Same);
    // `OrderV2` still knows version 1, and is not asked.
    assert_eq!(order.verdict(&OrderV1 { sku: "a".into() }.command_hash()), Verdict::Retired);
    assert_eq!((order.hash_at(1), Order::contract_at(1), Order::keeps(1)), (None, None, false));
}

/// Version 2 had a struct that is gone: its records are nobody's, not "another command".
#[test]
fn a_version_that_previous_leaps_over_is_retired() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "order", version = 3, previous = OrderV1)]
    struct Order {
        sku: String,
    }
    impl From<&Order> for OrderV1 {
        fn from(order: &Order) -> Self {
            Self { sku: order.sku.clone() }
        }
    }
    impl From<OrderV1> for Order {
        fn from(old: OrderV1) -> Self {
            Self { sku: old.sku }
        }
    }
    let order = Order { sku: "a".into() };
    let second = OrderV2 { sku: "a".into(), count: 1 };
    assert_eq!(order.verdict(&OrderV1 { sku: "a".into() }.command_hash()), Verdict::Same);
    assert_eq!(order.verdict(&second.command_hash()), Verdict::Retired);
    assert_eq!((order.hash_at(2), Order::contract_at(2), Order::keeps(2)), (None, None, false));

    // With `oldest`, the fields themselves say the versions that no struct was frozen for.
    #[derive(IdempotentCommand)]
    #[idem(operation = "order", version = 3, previous = OrderV1, oldest = 1)]
    struct Kept {
        sku: String,
        #[idem(until = 2)]
        count: u32,
    }
    impl From<&Kept> for OrderV1 {
        fn from(order: &Kept) -> Self {
            Self { sku: order.sku.clone() }
        }
    }
    impl From<OrderV1> for Kept {
        fn from(old: OrderV1) -> Self {
            Self { sku: old.sku, count: 1 }
        }
    }
    let kept = Kept { sku: "a".into(), count: 1 };
    for stored in [second.command_hash(), OrderV1 { sku: "a".into() }.command_hash(), kept.command_hash()] {
        assert_eq!(kept.verdict(&stored), Verdict::Same, "{stored}");
    }
    assert_eq!(Kept { sku: "a".into(), count: 2 }.hash_at(1), None);
}
