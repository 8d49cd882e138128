use rustc_hash::FxHashMap;

use crate::{
    By, ContextId, Evict, GenerationId, Header, Record, Replacement, SegmentId, TreeError,
};

/// How the rollouts of several files are called in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutNames {
    /// As each file calls them; two files with a rollout of one name are an error.
    AsWritten,
    /// `FILE/ROLLOUT`, for workers that all begin at `r0`.
    ByFile,
}

/// Records of several files as those of one, under ids of their own.
///
/// `files` are the files with their names, each with a header first. The merged header is the first
/// one's, with all files that sources count and the lowest fidelity. Records of unknown type are
/// kept as they are.
///
/// ```
/// use pleach_tree::{BranchTree, ReadOptions, RolloutNames, merge};
/// let worker = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
/// {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
/// {"t":"append","context":0,"from":null,"segments":[0]}
/// {"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8]}
/// {"t":"generation","id":0,"context":0,"output":[1]}
/// "#;
/// let read = |name| BranchTree::read(worker.as_bytes(), name, ReadOptions::STRICT);
/// let (a, b) = (read("a.jsonl")?.0, read("b.jsonl")?.0);
/// let files = [("a", a.records()), ("b", b.records())];
/// let (tree, _) =
///     BranchTree::from_records(merge(files, RolloutNames::ByFile)?, "all", ReadOptions::STRICT)?;
/// assert_eq!(tree.rollouts(), ["a/r0", "b/r0"]);
/// # Ok::<(), pleach_tree::TreeError>(())
/// ```
///
/// # Errors
/// [`TreeError::SharedRollout`], [`TreeError::Unlike`] where two headers disagree about cache or
/// tokenizer, [`TreeError::NoHeader`], and [`TreeError::TooMany`] ids.
pub fn merge<'a, N: AsRef<str>>(
    files: impl IntoIterator<Item = (N, &'a [Record])>,
    names: RolloutNames,
) -> Result<Vec<Record>, TreeError> {
    let mut merged: Vec<Record> = Vec::new();
    let mut header: Option<(String, Header)> = None;
    // Of each rollout the file that has it, by its place, since two files may have one name.
    let mut owners: FxHashMap<String, (usize, String)> = FxHashMap::default();
    let mut offsets = Offsets::default();
    for (place, (name, records)) in files.into_iter().enumerate() {
        let name = name.as_ref();
        let Some(Record::Header(own)) = records.first() else {
            return Err(TreeError::NoHeader { file: name.to_owned() });
        };
        let source_files = match &mut header {
            None => {
                header = Some((name.to_owned(), own.clone()));
                0
            }
            Some((first, header)) => {
                agree((first.as_str(), header), (name, own))?;
                header.fidelity = header.fidelity.min(own.fidelity);
                header.files.extend_from_slice(&own.files);
                u32::try_from(header.files.len() - own.files.len()).unwrap_or(u32::MAX)
            }
        };
        let file = File { offsets, source_files };
        for record in &records[1..] {
            let mut record = file.shifted(record, &mut offsets)?;
            let rollout = match &mut record {
                Record::Generation(generation) => Some(&mut generation.rollout),
                Record::Outcome(outcome) => Some(&mut outcome.rollout),
                _ => None,
            };
            if let Some(rollout) = rollout {
                if names == RolloutNames::ByFile {
                    *rollout = format!("{name}/{rollout}");
                }
                let owner =
                    owners.entry(rollout.clone()).or_insert_with(|| (place, name.to_owned()));
                if owner.0 != place {
                    let (first, second) = (owner.1.clone(), name.to_owned());
                    let rollout = rollout.clone();
                    return Err(TreeError::SharedRollout { first, second, rollout });
                }
            }
            merged.push(record);
        }
    }
    if let Some((_, header)) = header {
        merged.insert(0, Record::Header(header));
    }
    Ok(merged)
}

fn agree((first, one): (&str, &Header), (second, other): (&str, &Header)) -> Result<(), TreeError> {
    let what = if one.cache != other.cache {
        "cache semantics"
    } else if one.tokenizer != other.tokenizer {
        "tokenizer"
    } else {
        return Ok(());
    };
    Err(TreeError::Unlike { first: first.to_owned(), second: second.to_owned(), what })
}

/// Ids that are taken, of each kind.
#[derive(Debug, Clone, Copy, Default)]
struct Offsets {
    segments: u64,
    contexts: u64,
    generations: u64,
}

/// The ids that stand before those of one file.
struct File {
    offsets: Offsets,
    source_files: u32,
}

impl File {
    fn segment(&self, id: SegmentId) -> Result<SegmentId, TreeError> {
        Ok(SegmentId(shift(id.0, self.offsets.segments, "segments")?))
    }

    fn context(&self, id: ContextId) -> Result<ContextId, TreeError> {
        Ok(ContextId(shift(id.0, self.offsets.contexts, "contexts")?))
    }

    fn generation(&self, id: GenerationId) -> Result<GenerationId, TreeError> {
        Ok(GenerationId(shift(id.0, self.offsets.generations, "generations")?))
    }

    fn segments(&self, ids: &mut [SegmentId]) -> Result<(), TreeError> {
        ids.iter_mut().try_for_each(|id| {
            *id = self.segment(*id)?;
            Ok(())
        })
    }

    fn author(&self, by: &mut Option<By>) -> Result<(), TreeError> {
        if let Some(id) = by.as_mut().and_then(|by| by.generation.as_mut()) {
            *id = self.generation(*id)?;
        }
        Ok(())
    }

    /// The record under its new ids, which are noted as taken.
    fn shifted(&self, record: &Record, taken: &mut Offsets) -> Result<Record, TreeError> {
        let mut record = record.clone();
        let made = match &mut record {
            Record::Segment(segment) => {
                segment.id = self.segment(segment.id)?;
                taken.segments = taken.segments.max(u64::from(segment.id.0) + 1);
                if let Some(source) = &mut segment.source {
                    source.file = source.file.saturating_add(self.source_files);
                }
                None
            }
            Record::Append(append) => {
                append.from = append.from.map(|from| self.context(from)).transpose()?;
                self.segments(&mut append.segments)?;
                Some(&mut append.context)
            }
            Record::Evict(evict) => {
                let Evict { from, evicted, replacement, by, context, .. } = evict.as_mut();
                *from = self.context(*from)?;
                for entry in evicted {
                    entry.segment = self.segment(entry.segment)?;
                }
                if let Some(Replacement { segments, .. }) = replacement {
                    self.segments(segments)?;
                }
                self.author(by)?;
                Some(context)
            }
            Record::Replace(replace) => {
                replace.from = self.context(replace.from)?;
                self.segments(&mut replace.segments)?;
                self.author(&mut replace.by)?;
                Some(&mut replace.context)
            }
            Record::Fork(fork) => {
                fork.from = self.context(fork.from)?;
                Some(&mut fork.context)
            }
            Record::Generation(generation) => {
                generation.id = self.generation(generation.id)?;
                generation.context = self.context(generation.context)?;
                self.segments(&mut generation.output)?;
                taken.generations = taken.generations.max(u64::from(generation.id.0) + 1);
                None
            }
            Record::Header(_) | Record::Outcome(_) | Record::Unknown(_) => None,
        };
        if let Some(context) = made {
            *context = self.context(*context)?;
            taken.contexts = taken.contexts.max(u64::from(context.0) + 1);
        }
        Ok(record)
    }
}

fn shift(id: u32, offset: u64, what: &'static str) -> Result<u32, TreeError> {
    u32::try_from(u64::from(id) + offset).map_err(|_| TreeError::TooMany { what })
}
