//! The exact layouts under reprefill, from a map of string prefixes.
use std::collections::HashMap;

use super::{Oracle, Rows, Table};

impl Oracle {
    /// The trie in depth-first order, children in order of first appearance.
    pub fn packed(&self) -> Table {
        let mut children: HashMap<Vec<u32>, Vec<Vec<u32>>> = HashMap::new();
        let mut first = HashMap::new();
        for call in &self.calls {
            let view = call.view();
            let ids = self.values(&view);
            for end in 1..=ids.len() {
                let prefix = ids[..end].to_vec();
                if !first.contains_key(&prefix) {
                    first.insert(prefix.clone(), view[end - 1]);
                    children.entry(ids[..end - 1].to_vec()).or_default().push(prefix);
                }
            }
        }
        let mut order: Vec<Vec<u32>> = Vec::new();
        walk(&children, &[], &mut order);
        let mut rows = Rows::default();
        for prefix in &order {
            rows.tokens.extend(prefix.last());
            rows.positions.push(prefix.len() as i32 - 1);
            rows.identities.push(first[prefix]);
            let last =
                order.iter().rposition(|other| other.starts_with(prefix)).unwrap_or_default();
            rows.ends.push(last as i32 + 1);
        }
        let at: HashMap<&[u32], u32> = order.iter().map(Vec::as_slice).zip(0..).collect();
        for scored in self.calls.iter().flat_map(|call| self.scored(call)) {
            let source = at[self.values(&scored.prefix).as_slice()];
            rows.terms.push((
                source,
                scored.target,
                scored.generation,
                scored.offset,
                scored.weight,
            ));
        }
        let ancestors =
            |row: &Vec<u32>| (0..order.len()).filter(|&key| row.starts_with(&order[key])).collect();
        Table { sees: order.iter().map(ancestors).collect(), rows: vec![rows] }
    }

    /// The views that no other view properly extends, each once.
    pub fn segments_layout(&self) -> Table {
        let views: Vec<Vec<u32>> =
            self.calls.iter().map(|call| self.values(&call.view())).collect();
        let mut rows: Vec<Rows> = Vec::new();
        for (call, view) in self.calls.iter().zip(&views) {
            let extended =
                views.iter().any(|other| other.len() > view.len() && other.starts_with(view));
            if !extended && !rows.iter().any(|row| row.tokens == *view) {
                rows.push(Rows::causal(view.clone(), call.view()));
            }
        }
        for (call, view) in self.calls.iter().zip(&views) {
            let Some(row) = rows.iter_mut().find(|row| row.tokens.starts_with(view)) else {
                continue;
            };
            for scored in self.scored(call) {
                let source = scored.prefix.len() as u32 - 1;
                row.terms.push((
                    source,
                    scored.target,
                    scored.generation,
                    scored.offset,
                    scored.weight,
                ));
            }
        }
        Table { rows, sees: Vec::new() }
    }
}

fn walk(children: &HashMap<Vec<u32>, Vec<Vec<u32>>>, prefix: &[u32], order: &mut Vec<Vec<u32>>) {
    for child in children.get(prefix).into_iter().flatten() {
        order.push(child.clone());
        walk(children, child, order);
    }
}
