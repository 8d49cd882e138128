use std::fmt;

use pleach_tree::{CacheSemantics, Record, write_records};
use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};

use super::grow::grow;
use super::step::{Cut, Pick, Step, Text};

/// How large the drawn trees are.
#[derive(Debug, Clone, Copy)]
pub struct Trees {
    /// Most steps of a harness.
    pub steps: usize,
    /// Number of token ids; a small one makes prefixes of different segments equal.
    pub vocabulary: u32,
    /// Most tokens of a segment.
    pub longest: usize,
    /// What the engine does with survivors; under `kv_evict` nothing forks.
    pub cache: CacheSemantics,
}

impl Default for Trees {
    fn default() -> Self {
        Self { steps: 10, vocabulary: 6, longest: 5, cache: CacheSemantics::Reprefill }
    }
}

impl Trees {
    /// The same under `kv_evict`.
    pub fn kv_evict() -> Self {
        Self { cache: CacheSemantics::KvEvict, ..Self::default() }
    }
}

/// Sound eviction records of every shape: mixed, deep caterpillars, stars, groups of rollouts over
/// one prompt, forests.
pub fn trees(trees: Trees) -> impl Strategy<Value = Drawn> {
    steps(trees).prop_map(move |steps| Drawn(grow(&steps, trees.cache)))
}

/// Records that print as the file that they are, so that a failing case can be saved and looked at.
#[derive(Clone)]
pub struct Drawn(pub Vec<Record>);

impl std::ops::Deref for Drawn {
    type Target = Vec<Record>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl fmt::Debug for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        write_records(&mut lines, &self.0).map_err(|_| fmt::Error)?;
        write!(f, "\n{}", String::from_utf8_lossy(&lines))
    }
}

/// The steps that [`trees`] carries out.
pub fn steps(trees: Trees) -> impl Strategy<Value = Vec<Step>> {
    let many = |step: BoxedStrategy<Step>| vec(step, 1..=trees.steps);
    let say = || say(trees);
    let evict = || cut(trees).prop_map(Step::Evict).boxed();
    let root = || vec(text(trees), 0..3).prop_map(Step::Root).boxed();
    prop_oneof![
        4 => many(any_step(trees)),
        1 => vec(prop_oneof![4 => say(), 1 => evict()], trees.steps..=3 * trees.steps),
        1 => branches(trees, Just(false).boxed(), say()),
        1 => branches(trees, Just(true).boxed(), prop_oneof![say(), evict()].boxed()),
        1 => many(prop_oneof![root(), say(), evict(), any::<u8>().prop_map(Step::Switch)].boxed()),
    ]
}

/// Forks of the first context, each with a call and one step more: a star, or a group of rollouts
/// over one prompt.
fn branches(
    trees: Trees,
    rollout: BoxedStrategy<bool>,
    more: BoxedStrategy<Step>,
) -> impl Strategy<Value = Vec<Step>> {
    let fork = (any::<u8>(), rollout).prop_map(|(reason, rollout)| Step::Fork {
        from: 0,
        reason,
        rollout,
    });
    let branch = (fork, say(trees), more).prop_map(|(fork, say, more)| [fork, say, more]);
    vec(branch, 1..=trees.steps).prop_map(|branches| branches.into_iter().flatten().collect())
}

fn any_step(trees: Trees) -> BoxedStrategy<Step> {
    let fork = (any::<u8>(), any::<u8>(), any::<bool>());
    let texts = move |most: usize| vec(text(trees), 0..=most);
    prop_oneof![
        6 => say(trees),
        4 => cut(trees).prop_map(Step::Evict),
        2 => (text(trees), text(trees), cut(trees)).prop_map(|(ask, summary, cut)| Step::Summarise(ask, summary, cut)),
        2 => (texts(2), any::<Option<u8>>()).prop_map(|(texts, back)| Step::Append(texts, back)),
        1 => texts(2).prop_map(Step::Root),
        1 => texts(2).prop_map(Step::Again),
        1 => (vec(any::<u8>(), 0..4), texts(1)).prop_map(|(kept, texts)| Step::Replace(kept, texts)),
        2 => fork.prop_map(|(from, reason, rollout)| Step::Fork { from, reason, rollout }),
        1 => any::<u8>().prop_map(Step::Switch),
        1 => any::<u8>().prop_map(Step::Back),
        1 => Just(Step::Note),
    ]
    .boxed()
}

fn say(trees: Trees) -> BoxedStrategy<Step> {
    let parts = (vec(text(trees), 0..3), vec(text(trees), 0..3), proptest::bool::weighted(0.1));
    parts.prop_map(|(output, reply, dropped)| Step::Say { output, reply, dropped }).boxed()
}

fn text(trees: Trees) -> impl Strategy<Value = Text> + Clone {
    let tokens = prop_oneof![
        6 => vec(0..trees.vocabulary, 1..=trees.longest.max(1)),
        2 => vec(0..trees.vocabulary, 1..=1),
        1 => Just(Vec::new()),
    ];
    let weights = prop_oneof![2 => Just(Vec::new()), 1 => vec((1..4_u8, any::<u8>()), 1..3)];
    let copy = proptest::option::weighted(0.2, any::<u8>());
    let parts = (tokens, 0..4_u8, 0..8_u8, weights, proptest::bool::weighted(0.2), copy);
    parts.prop_map(|(tokens, role, origin, weights, full, copy_of)| Text {
        tokens,
        role,
        origin,
        weights,
        full,
        copy_of,
    })
}

fn cut(trees: Trees) -> impl Strategy<Value = Cut> {
    let pick = (any::<u8>(), proptest::option::of((any::<u8>(), any::<u8>())));
    let picks = vec(pick.prop_map(|(segment, range)| Pick { segment, range }), 1..4);
    let replacement = proptest::option::of(vec(text(trees), 0..3));
    let parts = (picks, replacement, any::<bool>(), 0..6_u8, 0..8_u8, 0..7_u8);
    parts.prop_map(|(picks, replacement, one_each, kind, place, by)| Cut {
        picks,
        replacement,
        one_each,
        kind,
        place,
        by,
    })
}
