use std::fmt;

use petgraph::dot::{Config, Dot};
use rustc_hash::FxHashMap;

use crate::{BranchTree, ContextId, Operation};

impl BranchTree {
    /// The branch tree as a graph in the DOT language: contexts with their sizes, and operations
    /// between them.
    pub fn dot(&self) -> impl fmt::Display + '_ {
        let context =
            |id: Option<ContextId>| id.map_or_else(|| "empty".to_string(), |id| id.to_string());
        let mut calls: FxHashMap<ContextId, String> = FxHashMap::default();
        for generation in self.generations() {
            let (rollout, thread) = (escaped(&generation.rollout), escaped(&generation.thread));
            *calls.entry(generation.context).or_default() +=
                &format!("\\n{} ({rollout}/{thread})", generation.id);
        }
        let graph = self.graph.map(
            |_, node| {
                let called = node.id().and_then(|id| calls.get(&id)).map_or("", String::as_str);
                format!("{}\\n{} tokens{called}", context(node.id()), node.tokens())
            },
            |_, change| {
                self.operation_of(change)
                    .map(|operation| describe(operation, change.removed()))
                    .unwrap_or_default()
            },
        );
        let attributes = |label: &str| format!("label=\"{label}\"");
        let text = format!(
            "{}",
            Dot::with_attr_getters(
                &graph,
                &[Config::NodeNoLabel, Config::EdgeNoLabel],
                &|_, edge| attributes(edge.weight()),
                &|_, (_, label)| format!("shape=box {}", attributes(label)),
            )
        );
        text
    }
}

/// A name as it stands inside a quoted label.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ")
}

fn describe(operation: Operation<'_>, removed: &[crate::Span]) -> String {
    let tokens: usize = removed.iter().map(crate::Span::len).sum();
    match operation {
        Operation::Append(append) => format!("append {}", append.segments.len()),
        Operation::Evict(evict) => {
            let kind = evict
                .replacement
                .as_ref()
                .map_or_else(String::new, |r| format!(" -> {:?}", r.kind).to_lowercase());
            format!("evict {tokens} tokens{kind}")
        }
        Operation::Replace(_) => format!("replace, {tokens} tokens leave"),
        Operation::Fork(fork) => format!("fork ({:?})", fork.reason).to_lowercase(),
    }
}
