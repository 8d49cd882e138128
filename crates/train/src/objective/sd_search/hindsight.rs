use crate::{
    error::{ObjectiveError, TrainError},
    objective::divergence::Alignment,
};
use pleach_layout::TermId;
use pleach_tree::{
    BranchTree, Generation, GenerationId, LossRun, Origin, Outcome, Record, RecordBuilder, Role,
    Segment, SegmentId,
};
use std::collections::{BTreeMap, HashMap};

/// A search query inside what a generation sampled: offsets of its output, half open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Query {
    /// The generation.
    pub generation: GenerationId,
    /// First token.
    pub start: u32,
    /// First token behind it.
    pub end: u32,
}

/// The token ids that stand around what a hindsight block tells, from the tokenizer of the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HindsightTemplate {
    /// Before everything.
    pub open: Vec<u32>,
    /// Before each query.
    pub query: Vec<u32>,
    /// Behind the queries of a rollout whose reward is above [`threshold`](Self::threshold).
    pub success: Vec<u32>,
    /// Behind those of another.
    pub failure: Vec<u32>,
    /// Behind everything.
    pub close: Vec<u32>,
    /// The reward above which a rollout succeeded.
    pub threshold: f64,
}

/// A tree's records with teacher branches, and which query token of an agent is which of a teacher.
#[derive(Debug, Clone, PartialEq)]
pub struct Hindsight {
    /// The records to build the tree from.
    pub records: Vec<Record>,
    /// The query tokens, as the student saw them and with hindsight.
    pub aligned: Vec<Alignment>,
}

/// Adds teacher branches to a tree of groups of rollouts: the context of every generation with
/// queries, then a block of the queries and outcomes of its whole group, then the same output once
/// more, without loss.
///
/// A teacher shares its trunk with the agent, so it adds one block and one output to the packed
/// layout. Its generations belong to the agent's rollout, in threads of their own, and to its terms
/// of weight 0: [`Timelines`](crate::advantage::Timelines) of the new tree hold the same optimised tokens and
/// reach every term. Layouts by thread (`compressed`, `full`) and what counts sampled tokens
/// ([`RolloutHealth`](crate::diagnostics::RolloutHealth)) count teachers too: ask them of the tree before.
///
/// # Errors
/// A query outside what its generation sampled or inside another one, a rollout with queries and
/// without an outcome, and ids that are used up.
pub fn hindsight(
    tree: &BranchTree,
    queries: &[Query],
    template: &HindsightTemplate,
) -> Result<Hindsight, TrainError> {
    let outcomes: HashMap<&str, &Outcome> =
        tree.outcomes().map(|outcome| (outcome.rollout.as_str(), outcome)).collect();
    let mut by_generation: BTreeMap<GenerationId, Vec<Query>> = BTreeMap::new();
    for query in queries {
        let generation = tree.generation(query.generation);
        let sampled = tree.view(query.generation).map_or(0, |view| view.output().count());
        let (Some(generation), true) =
            (generation, query.start <= query.end && query.end as usize <= sampled)
        else {
            return Err(ObjectiveError::Query {
                generation: query.generation.0,
                start: query.start,
                end: query.end,
                sampled,
            }
            .into());
        };
        if !outcomes.contains_key(generation.rollout.as_str()) {
            return Err(ObjectiveError::NoOutcome { rollout: generation.rollout.clone() }.into());
        }
        by_generation.entry(query.generation).or_default().push(*query);
    }
    for queries in by_generation.values_mut() {
        queries.sort();
        if let Some(pair) = queries.windows(2).find(|pair| pair[1].start < pair[0].end) {
            let Query { generation, start, end } = pair[1];
            return Err(ObjectiveError::OverlappingQueries {
                generation: generation.0,
                start,
                end,
            }
            .into());
        }
    }
    let mut branches = Branches::new(tree)?;
    let mut aligned = Vec::new();
    for generation in tree.generations() {
        let Some(queries) = by_generation.get(&generation.id) else { continue };
        let Some(outcome) = outcomes.get(generation.rollout.as_str()) else { continue };
        let block = branches
            .block(&outcome.group, || block(tree, &outcome.group, &by_generation, template))?;
        let teacher = branches.teacher(tree, generation, block)?;
        for query in queries {
            let pair = |offset| Alignment {
                student: TermId::new(generation.id.0, offset),
                teacher: TermId::new(teacher.0, offset),
            };
            aligned.extend((query.start..query.end).map(pair));
        }
    }
    Ok(Hindsight { records: branches.log.into_records(), aligned })
}

/// The tokens of a group's block: rollout by rollout its queries, then how it ended.
fn block(
    tree: &BranchTree,
    group: &str,
    queries: &BTreeMap<GenerationId, Vec<Query>>,
    template: &HindsightTemplate,
) -> Vec<u32> {
    let mut tokens = template.open.clone();
    for outcome in tree.outcomes().filter(|outcome| outcome.group == group) {
        for generation in
            tree.generations().filter(|generation| generation.rollout == outcome.rollout)
        {
            let output: Vec<u32> = tree
                .view(generation.id)
                .into_iter()
                .flat_map(|view| view.output())
                .map(|t| t.token)
                .collect();
            for query in queries.get(&generation.id).into_iter().flatten() {
                tokens.extend(&template.query);
                tokens.extend(
                    output.get(query.start as usize..query.end as usize).unwrap_or_default(),
                );
            }
        }
        tokens.extend(if outcome.reward > template.threshold {
            &template.success
        } else {
            &template.failure
        });
    }
    tokens.extend(&template.close);
    tokens
}

/// The records of a tree while teacher branches are written behind them.
struct Branches {
    log: RecordBuilder,
    /// What the names of teachers' threads hold and no other thread's does.
    mark: String,
    blocks: HashMap<String, SegmentId>,
}

impl Branches {
    fn new(tree: &BranchTree) -> Result<Self, TrainError> {
        let mut mark = "#hindsight".to_owned();
        while tree.generations().any(|generation| generation.thread.contains(&mark)) {
            mark.push('#');
        }
        let log = RecordBuilder::resume(tree.records().iter().cloned())?;
        Ok(Self { log, mark, blocks: HashMap::new() })
    }

    /// The block of a group, written once.
    fn block(
        &mut self,
        group: &str,
        tokens: impl FnOnce() -> Vec<u32>,
    ) -> Result<SegmentId, TrainError> {
        if let Some(&id) = self.blocks.get(group) {
            return Ok(id);
        }
        let id = self.log.tokens(Role::User, Origin::Harness, tokens())?;
        self.blocks.insert(group.to_owned(), id);
        Ok(id)
    }

    /// The generation once more, behind a block.
    fn teacher(
        &mut self,
        tree: &BranchTree,
        agent: &Generation,
        block: SegmentId,
    ) -> Result<GenerationId, TrainError> {
        let context = self.log.append(agent.context, [block])?;
        let output = agent
            .output
            .iter()
            .filter_map(|&id| tree.segment(id))
            .map(|segment| self.log.segment(unweighted(segment)));
        let output = output.collect::<Result<_, _>>()?;
        let thread = format!("{}{}/{}", agent.thread, self.mark, agent.id.0);
        let (rollout, policy) = (agent.rollout.clone(), agent.policy.clone());
        Ok(self.log.generation(Generation {
            rollout,
            thread,
            policy,
            ..Generation::new(GenerationId(0), context, output)
        })?)
    }
}

/// A segment without loss and without what was recorded when it was sampled, which was under
/// another context.
fn unweighted(segment: &Segment) -> Segment {
    let end = u32::try_from(segment.extent()).unwrap_or(u32::MAX);
    let loss = Some((0..end.min(1)).map(|start| LossRun { start, end, weight: 0.0 }).collect());
    Segment { loss, logprobs: None, ..segment.clone() }
}
