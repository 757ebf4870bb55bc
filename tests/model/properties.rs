//! What must hold in every state, by the names that the mutations break.

use idem_core::{CallState, Status};
use stateright::Property;

use crate::rig::index;
use crate::steps::Explored;
use crate::world::World;

pub(crate) const EFFECT_ONCE: &str = "a command takes effect at most once";
pub(crate) const NO_SHARING: &str = "no two commands share a record";
pub(crate) const ANSWER_STAYS: &str = "an answer never changes";
pub(crate) const FENCE_HOLDS: &str = "an old fence never writes";
pub(crate) const APPLIED_IS_TRUE: &str = "what is said to be applied is";
pub(crate) const CALLS_HAVE_OWNERS: &str = "calls do not exceed owners";
pub(crate) const ROW_WHEN_COMPLETED: &str = "a business row exactly when completed";
pub(crate) const ANSWERED: &str = "once faults stop every client gets a definite answer";
pub(crate) const SETTLES: &str = "every record settles without clients";

pub(crate) fn all() -> Vec<Property<Explored>> {
    vec![
        Property::always(EFFECT_ONCE, |_, world: &World| {
            world.providers.iter().all(|provider| provider.effects.iter().all(|effects| *effects <= 1))
        }),
        Property::always(NO_SHARING, no_sharing),
        Property::always(ANSWER_STAYS, |_, world: &World| !world.told.changed),
        Property::always(FENCE_HOLDS, |_, world: &World| !world.told.late_write),
        Property::always(APPLIED_IS_TRUE, applied_is_true),
        Property::always(CALLS_HAVE_OWNERS, |_, world: &World| {
            let within = |row: &idem_core::Record| world.told.sent.iter().all(|sent| u32::from(*sent) <= row.attempts);
            world.told.failed_over || world.row.as_deref().is_none_or(within)
        }),
        Property::always(ROW_WHEN_COMPLETED, row_when_completed),
        Property::always(ANSWERED, |explored: &Explored, world: &World| explored.heals(world, true)),
        Property::always(SETTLES, |explored: &Explored, world: &World| explored.heals(world, false)),
    ]
}

fn no_sharing(explored: &Explored, world: &World) -> bool {
    let both = |provider: &crate::world::Provider| provider.effects.iter().all(|effects| *effects > 0);
    let took_two = !explored.rig.config.has_lives() && world.providers.iter().any(both);
    !world.told.crossed && !took_two
}

fn applied_is_true(explored: &Explored, world: &World) -> bool {
    let is_true = |row: &idem_core::Record| {
        let command = usize::from(explored.rig.command_in(row));
        let applied = row.calls.iter().filter(|call| matches!(call.state, CallState::Applied(_)));
        applied.into_iter().all(|call| world.providers[index(&call.name)].effects[command] > 0)
    };
    !world.told.untrue && world.row.as_deref().is_none_or(is_true)
}

fn row_when_completed(explored: &Explored, world: &World) -> bool {
    let Some(row) = world.row.as_deref() else { return true };
    let own = Some(explored.rig.command_in(row));
    match row.status {
        Status::Completed(_) => world.business == own,
        Status::Expired { .. } => true,
        // A key that is used again meets the row of its first life.
        _ => world.business.is_none() || world.told.lives > 1,
    }
}
