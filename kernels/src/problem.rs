//! The masks that tests and benches share.

use serde::Serialize;
use std::fmt;

/// The masks that tests and benches share, each a shape of rollout that a trainer meets.
///
/// A length is not enough to compare attention on trees: what a kernel can skip depends on the
/// shape. The names are those of every table of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NamedProblem {
    /// One path: plain causal attention.
    Causal,
    /// A summary fold: a prefix of a quarter that all see, then twelve branches of a sixteenth that
    /// see the prefix and themselves.
    Fold,
    /// Cleared tool results: pieces of 1/32, in turn a step of the trunk and a leaf that nobody
    /// sees later.
    ClearedResults,
    /// Eight short answers to one prompt of three quarters.
    GroupLongPrompt,
    /// Seven long answers to one prompt of an eighth.
    GroupLongAnswers,
    /// A trunk of many short steps, each with a leaf as long as itself: the deepest tree.
    Caterpillar,
    /// A random tree of pieces of 1 to 1/16 of the length, the same for each length.
    RandomTree,
}

impl NamedProblem {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 7] = [
        Self::Causal,
        Self::Fold,
        Self::ClearedResults,
        Self::GroupLongPrompt,
        Self::GroupLongAnswers,
        Self::Caterpillar,
        Self::RandomTree,
    ];

    /// The name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Causal => "causal",
            Self::Fold => "fold",
            Self::ClearedResults => "cleared-results",
            Self::GroupLongPrompt => "group-long-prompt",
            Self::GroupLongAnswers => "group-long-answers",
            Self::Caterpillar => "caterpillar",
            Self::RandomTree => "random-tree",
        }
    }

    /// Interval ends and positions of the problem with `time` tokens; any length works, 512 and
    /// more keep the shape.
    pub fn tree(self, time: usize) -> ProblemTree {
        let mut tree = Growth::new(time);
        match self {
            Self::Causal => tree.open(time),
            Self::Fold => tree.star(time / 4, time / 16),
            Self::GroupLongPrompt => tree.star(time - time / 4, time / 32),
            Self::GroupLongAnswers => tree.star(time / 8, time / 8),
            Self::ClearedResults => tree.comb(time / 32),
            Self::Caterpillar => tree.comb(time / 256),
            Self::RandomTree => tree.random(),
        }
        tree.finish()
    }
}

impl fmt::Display for NamedProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The arrays of a named problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemTree {
    /// First index that does not see each token any more.
    pub ends: Vec<i32>,
    /// Depth of each token.
    pub positions: Vec<i32>,
}

/// A tree that grows in depth-first order.
struct Growth {
    time: usize,
    ends: Vec<i32>,
    positions: Vec<i32>,
    open: Vec<std::ops::Range<usize>>,
}

impl Growth {
    fn new(time: usize) -> Self {
        Self { time, ends: Vec::new(), positions: Vec::new(), open: Vec::new() }
    }

    fn left(&self) -> usize {
        self.time - self.ends.len()
    }

    /// Adds a piece below the open ones.
    fn open(&mut self, len: usize) {
        let depth: usize = self.open.iter().map(|piece| piece.len()).sum();
        let start = self.ends.len();
        let len = len.clamp(1, self.left().max(1)).min(self.left());
        self.positions.extend((depth..depth + len).map(|position| position as i32));
        self.ends.resize(start + len, self.time as i32);
        self.open.push(start..start + len);
    }

    /// Hides the last open piece from what follows.
    fn close(&mut self) {
        let stop = self.ends.len() as i32;
        if let Some(piece) = self.open.pop() {
            self.ends[piece].fill(stop);
        }
    }

    fn star(&mut self, prompt: usize, branch: usize) {
        self.open(prompt);
        while self.left() > 0 {
            self.open(branch);
            self.close();
        }
    }

    /// A trunk in steps, with a leaf as long as a step behind each.
    fn comb(&mut self, step: usize) {
        while self.left() > 0 {
            self.open(step);
            self.open(step);
            self.close();
        }
    }

    fn random(&mut self) {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as usize) % below.max(1)
        };
        while self.left() > 0 {
            for _ in 0..draw(self.open.len().min(4) + 1) {
                self.close();
            }
            self.open(1 + draw(self.time / 16));
        }
    }

    fn finish(mut self) -> ProblemTree {
        while !self.open.is_empty() {
            self.close();
        }
        ProblemTree { ends: self.ends, positions: self.positions }
    }
}
