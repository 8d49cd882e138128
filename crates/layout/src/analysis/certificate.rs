use pleach_tree::Span;
use serde::Serialize;

use crate::Identity;
use crate::forest::Forest;
use crate::layouts::Layouts;

/// Whether the union of a tree's tokens, each once, would be exact under reprefill.
///
/// It is exactly then when, for every row i, the live view read in order is V_i in tape order and
/// V_j = V_i ∩ {k <= j} for every j in V_i. In the trie of token identities that says: every
/// identity has one prefix, so it is one node. A survivor behind a hole, a token behind an
/// insertion and a span that came back elsewhere are a second node of an identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Certificate {
    /// Whether the union would be exact at any depth.
    pub union_is_exact: bool,
    /// Tokens in the union: distinct identities of all views.
    pub union_tokens: usize,
    /// Identities that stand behind two or more different prefixes.
    pub copied: usize,
    /// One of them, that of the lowest segment id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_copied: Option<Identity>,
}

impl Layouts<'_> {
    /// Checks the condition, in time linear in the tokens that the tree's operations add.
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
    /// let certificate = layouts.certificate();
    /// // The survivors 7, 8 and 9 are read behind two prefixes: with the evicted token, and without it.
    /// assert!(!certificate.union_is_exact);
    /// assert_eq!((certificate.union_tokens, certificate.copied), (6, 3));
    /// // So much longer is the exact layout than each token once.
    /// assert_eq!(layouts.account()?.surcharge(&certificate), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn certificate(&self) -> Certificate {
        let identities = |span: Span| {
            (span.start..span.end).map(move |offset| Identity { segment: span.segment.0, offset })
        };
        let forest = Forest::grow(self.tree(), identities);
        let mut nodes: Vec<Identity> = forest
            .trie
            .depth_first()
            .into_iter()
            .filter_map(|node| forest.trie.key(node))
            .collect();
        nodes.sort_unstable();
        let mut copied =
            nodes.chunk_by(|a, b| a == b).filter(|same| same.len() > 1).map(|same| same[0]);
        let first_copied = copied.next();
        let copied = copied.count() + usize::from(first_copied.is_some());
        let union_tokens = nodes.chunk_by(|a, b| a == b).count();
        Certificate { union_is_exact: copied == 0, union_tokens, copied, first_copied }
    }
}
