//! A permit without a question and without a lock: what is left of a signal when the gate is taken out.
//!
//! For the one build that shows what the gate costs. It breaks G1, G3 and G5, so the feature alone does not
//! compile: whoever builds with it has to say so in the environment of the compiler too.

use crate::sync::map::DashMap;
use tidal_entities::community::CommunityMembership;

use crate::gate::{EventTime, ForwardPermit, Gate};

const _: () = assert!(
    option_env!("TIDAL_BENCH_WITHOUT_GATE").is_some(),
    "the feature bench-without-gate lets signals of users who left through; it is for `cargo xtask bench` alone: \
     leave the feature out"
);

impl Gate {
    #[expect(clippy::unused_self, reason = "the same signature as with the gate")]
    pub(crate) fn permit<'a>(
        &'a self,
        _status: &'a DashMap<u64, CommunityMembership>,
        _user_id: u64,
        _event_time: EventTime,
    ) -> ForwardPermit<()> {
        ForwardPermit::without_gate()
    }
}
