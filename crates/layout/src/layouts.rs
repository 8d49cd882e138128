use pleach_tree::{BranchTree, CacheSemantics, Operation, ReplacementKind};
use serde::{Deserialize, Serialize};

use crate::flattened::{self, Flat};
use crate::forest::Forest;
use crate::{Identity, LayoutError, Sequence, packed, segments, tape};

/// The kinds of layout, two of them exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutKind {
    /// The trie in depth-first order, exact in one pass.
    Packed,
    /// One causal sequence per maximal view, exact in K + 1 passes: what LogitTree trains on.
    Segments,
    /// The last view of each thread: time travel, and evicted samples are not trained.
    Compressed,
    /// Everything a thread ever saw: stale context.
    Full,
}

impl LayoutKind {
    /// All layouts.
    pub const ALL: [Self; 4] = [Self::Packed, Self::Segments, Self::Compressed, Self::Full];

    /// Its name in formats and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Segments => "segments",
            Self::Compressed => "compressed",
            Self::Full => "full",
        }
    }
}

/// The sequences of one layout, and which token of which segment stands where.
///
/// It can be cached: what is deserialised is [checked](Layout::check), so that a broken cache is an
/// error where it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedLayout")]
pub struct Layout {
    /// Which layout it is.
    pub kind: LayoutKind,
    /// Its rows.
    pub sequences: Vec<Sequence>,
    /// For each row the identity of each of its tokens; of tokens that are one node, the first to
    /// appear.
    pub identities: Vec<Vec<Identity>>,
    /// For `packed` under reprefill: the index of the token before each token, -1 at a root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parents: Option<Vec<i32>>,
}

/// A layout as it was read.
#[derive(Deserialize)]
struct UncheckedLayout {
    kind: LayoutKind,
    sequences: Vec<Sequence>,
    identities: Vec<Vec<Identity>>,
    #[serde(default)]
    parents: Option<Vec<i32>>,
}

impl TryFrom<UncheckedLayout> for Layout {
    type Error = LayoutError;

    fn try_from(read: UncheckedLayout) -> Result<Self, LayoutError> {
        let UncheckedLayout { kind, sequences, identities, parents } = read;
        let layout = Self { kind, sequences, identities, parents };
        layout.check_beside_sequences()?;
        Ok(layout)
    }
}

impl<'l> IntoIterator for &'l Layout {
    type Item = &'l Sequence;
    type IntoIter = std::slice::Iter<'l, Sequence>;

    /// Its sequences.
    fn into_iter(self) -> Self::IntoIter {
        self.sequences.iter()
    }
}

impl Layout {
    /// Whether its arrays fit together, those of its sequences among them.
    ///
    /// # Errors
    /// The first fault that is found, by array and index.
    pub fn check(&self) -> Result<(), LayoutError> {
        self.sequences.iter().try_for_each(Sequence::check)?;
        self.check_beside_sequences()
    }

    fn check_beside_sequences(&self) -> Result<(), LayoutError> {
        let (sequences, found) = (self.sequences.len(), self.identities.len());
        if sequences != found {
            return Err(LayoutError::IdentityLists { sequences, found });
        }
        for (sequence, identities) in self.sequences.iter().zip(&self.identities) {
            let (tokens, found) = (sequence.len(), identities.len());
            if tokens != found {
                return Err(LayoutError::ArrayLength { array: "identities", found, tokens });
            }
        }
        let Some(parents) = &self.parents else { return Ok(()) };
        let (tokens, found) = (self.sequences.first().map_or(0, Sequence::len), parents.len());
        if tokens != found {
            return Err(LayoutError::ArrayLength { array: "parents", found, tokens });
        }
        let outside = |&(token, &parent): &(i64, &i32)| !(-1..token).contains(&i64::from(parent));
        match (0..).zip(parents).find(outside) {
            Some((token, &parent)) => {
                Err(LayoutError::ParentOutside { token: token as usize, parent })
            }
            None => Ok(()),
        }
    }

    /// Number of tokens in all rows.
    pub fn tokens(&self) -> usize {
        self.sequences.iter().map(Sequence::len).sum()
    }

    /// Number of visible (row, key) pairs.
    pub fn pairs(&self) -> u64 {
        self.sequences.iter().map(Sequence::pairs).sum()
    }

    /// Number of loss terms.
    pub fn supervised(&self) -> usize {
        self.sequences.iter().map(|sequence| sequence.terms.len()).sum()
    }
}

/// All layouts of one tree, built from one walk over its views.
///
/// ```
/// # use pleach_layout::Layouts;
/// # use pleach_tree::{BranchTree, ReadOptions};
/// # let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
/// # {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
/// # {"t":"append","context":0,"from":null,"segments":[0]}
/// # {"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}
/// # {"t":"generation","id":0,"context":0,"output":[1]}
/// # {"t":"append","context":1,"from":0,"segments":[1]}
/// # {"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,2]}]}
/// # {"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[10]}
/// # {"t":"generation","id":1,"context":2,"output":[2]}
/// # "#;
/// # let (tree, _) = BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT)?;
/// let layouts = Layouts::new(&tree)?;
/// let (packed, segments) = (layouts.packed()?, layouts.segments()?);
/// assert_eq!((packed.sequences.len(), packed.tokens()), (1, 9));
/// assert_eq!((segments.sequences.len(), segments.tokens()), (2, 10));
/// assert_eq!(packed.supervised(), segments.supervised());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Layouts<'t> {
    tree: &'t BranchTree,
    forest: Forest<u32>,
}

impl<'t> Layouts<'t> {
    /// Walks the views of `tree`, in time linear in the tokens that its operations add.
    ///
    /// # Errors
    /// A segment without tokens, a latent replacement, more than 2^31 - 1 tokens.
    pub fn new(tree: &'t BranchTree) -> Result<Self, LayoutError> {
        check(tree)?;
        let forest = Forest::grow(tree, |span| tree.tokens(span).iter().copied());
        crate::sequence::index(forest.trie.len())?;
        Ok(Self { tree, forest })
    }

    /// The tree.
    pub fn tree(&self) -> &'t BranchTree {
        self.tree
    }

    pub(crate) fn forest(&self) -> &Forest<u32> {
        &self.forest
    }

    /// The layout of a kind.
    ///
    /// # Errors
    /// [`LayoutError::KvEvict`] for `segments` under `kv_evict`; more than 2^31 - 1 tokens.
    pub fn layout(&self, kind: LayoutKind) -> Result<Layout, LayoutError> {
        match kind {
            LayoutKind::Packed => self.packed(),
            LayoutKind::Segments => self.segments(),
            LayoutKind::Compressed => self.compressed(),
            LayoutKind::Full => self.full(),
        }
    }

    /// The exact layout of one sequence: the trie in depth-first order, or the tape under
    /// `kv_evict`.
    ///
    /// # Errors
    /// More than 2^31 - 1 tokens.
    pub fn packed(&self) -> Result<Layout, LayoutError> {
        match self.tree.header().cache {
            CacheSemantics::Reprefill => packed::packed(self.tree, &self.forest),
            CacheSemantics::KvEvict => tape::packed(self.tree),
        }
    }

    /// The exact layout of K + 1 causal sequences, one per maximal view: the root-to-leaf paths that
    /// LogitTree trains on.
    ///
    /// # Errors
    /// [`LayoutError::KvEvict`]: survivors of an eviction in place are in no view of their own.
    pub fn segments(&self) -> Result<Layout, LayoutError> {
        match self.tree.header().cache {
            CacheSemantics::Reprefill => segments::segments(self.tree, &self.forest),
            CacheSemantics::KvEvict => {
                Err(LayoutError::KvEvict { layout: LayoutKind::Segments.name() })
            }
        }
    }

    /// Tokens and loss terms of each sequence of `segments`, without laying them out; none under
    /// `kv_evict`.
    ///
    /// All views together can be far longer than what the tree holds, so sizes are asked for first.
    pub fn segment_sizes(&self) -> Vec<(usize, usize)> {
        match self.tree.header().cache {
            CacheSemantics::Reprefill => segments::sizes(self.tree, &self.forest),
            CacheSemantics::KvEvict => Vec::new(),
        }
    }

    /// Naive-Compressed: the last view of each thread.
    ///
    /// # Errors
    /// More than 2^31 - 1 tokens.
    pub fn compressed(&self) -> Result<Layout, LayoutError> {
        Flat::layout(self.tree, LayoutKind::Compressed, &flattened::compressed(self.tree))
    }

    /// Naive-Full: everything that was ever live in a thread, in order of appearance.
    ///
    /// # Errors
    /// More than 2^31 - 1 tokens.
    pub fn full(&self) -> Result<Layout, LayoutError> {
        Flat::layout(self.tree, LayoutKind::Full, &flattened::full(self.tree))
    }
}

fn check(tree: &BranchTree) -> Result<(), LayoutError> {
    let at = |location: Option<&pleach_tree::Location>| {
        location.map_or_else(String::new, ToString::to_string)
    };
    if let Some(segment) = tree.first_without_tokens() {
        return Err(LayoutError::NoTokens {
            segment,
            location: at(tree.segment_location(segment)),
        });
    }
    for context in tree.contexts().filter_map(pleach_tree::Context::id) {
        if let Some(Operation::Evict(evict)) = tree.operation(context)
            && evict
                .replacement
                .as_ref()
                .is_some_and(|replacement| replacement.kind == ReplacementKind::Latent)
        {
            return Err(LayoutError::Latent {
                context,
                location: at(tree.context_location(context)),
            });
        }
    }
    Ok(())
}
