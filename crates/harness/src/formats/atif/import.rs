//! From trajectories to a conversion: which files, which threads, ids or messages.
use pleach_tree::{Fidelity, Location};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::Document;
use super::model::Trajectory;
use super::steps::Steps;
use crate::core::draft::Draft;
use crate::core::input::Relation;
use crate::core::script::{Script, Spot};
use crate::detect;
use crate::{Conversion, Harness, HarnessError, Input};

/// A trajectory in the thread that it is of.
pub(super) struct Part {
    pub(super) trajectory: Trajectory,
    /// The name of the thread; none where it goes on from the part before it.
    pub(super) thread: Option<String>,
    pub(super) spot: Spot,
    pub(super) key: String,
}

pub(super) fn convert(
    input: &Input,
    documents: Vec<Document>,
    draft: Draft,
) -> Result<Conversion, HarnessError> {
    let mut files = Files {
        input,
        draft,
        parts: Vec::new(),
        read: FxHashSet::from_iter([input.main().listed]),
        threads: FxHashSet::default(),
        asked: FxHashMap::default(),
    };
    for (index, document) in documents.into_iter().enumerate() {
        let thread = if index == 0 { "main".into() } else { format!("main-{}", index + 1) };
        files.threads.insert(thread.clone());
        files.document(document, Some(thread))?;
    }
    let Files { mut draft, parts, .. } = files;
    if let Some(first) = parts.first() {
        let agent = &first.trajectory.agent;
        draft.header.harness =
            format!("atif {}", agent.name.as_deref().unwrap_or_default()).trim_end().to_owned();
        draft.header.harness_version.clone_from(&agent.version);
    }
    let calls =
        || parts.iter().flat_map(|part| &part.trajectory.steps).filter(|step| step.is_call());
    if calls().next().is_some() && calls().all(|step| step.ids().is_some()) {
        draft.header.fidelity = Fidelity::Token;
        return super::tokens::convert(draft, parts);
    }
    let with = calls().filter(|step| step.ids().is_some()).count();
    if let Some(first) = parts.first().filter(|_| with > 0) {
        let message = format!(
            "only {with} of {} calls have token ids; they are left out, and text is read",
            calls().count()
        );
        draft.warn(&first.spot.at, "steps[].metrics", "partial-ids", message);
    }
    let mut script = Script::of(draft);
    let mut steps = Steps::default();
    for part in parts {
        steps.part(&mut script, part);
    }
    script.play()
}

/// The files of a run, while they are gathered.
struct Files<'i> {
    input: &'i Input,
    draft: Draft,
    parts: Vec<Part>,
    read: FxHashSet<String>,
    /// Names of threads, and how many were asked for by each name.
    threads: FxHashSet<String>,
    asked: FxHashMap<String, usize>,
}

impl Files<'_> {
    fn document(&mut self, document: Document, thread: Option<String>) -> Result<(), HarnessError> {
        let Document { value, member, spot } = document;
        let trajectory = match Trajectory::deserialize_checked(value) {
            Ok(trajectory) => trajectory,
            Err((key, message)) => {
                self.draft.fault(
                    &spot.at,
                    &key,
                    "field",
                    format!("{message}; the trajectory is left out"),
                );
                return Ok(());
            }
        };
        if let Some(version) = trajectory.unsupported().map(str::to_owned) {
            let message = format!("version {version} is not known; it is read as version 1.8");
            self.draft.fault(&spot.at, "schema_version", "unsupported-version", message);
        }
        let folder = member.listed.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        self.trajectory(trajectory, thread, &spot, "", &folder)
    }

    fn trajectory(
        &mut self,
        mut trajectory: Trajectory,
        thread: Option<String>,
        spot: &Spot,
        key: &str,
        folder: &str,
    ) -> Result<(), HarnessError> {
        let subagents = trajectory.subagent_trajectories.take().unwrap_or_default();
        let continued = trajectory.continued_trajectory_ref.take();
        let paths: Vec<String> = trajectory.steps.iter().flat_map(super::steps::referred).collect();
        self.parts.push(Part { trajectory, thread, spot: spot.clone(), key: key.to_owned() });
        if let Some(name) = continued {
            match self.beside(folder, &name)? {
                Some(documents) => {
                    documents.into_iter().try_for_each(|document| self.document(document, None))?
                }
                None => {
                    let message =
                        format!("the run goes on in {name}, which does not lie beside it");
                    self.draft.warn(&spot.at, "continued_trajectory_ref", "missing-file", message);
                }
            }
        }
        for (index, subagent) in subagents.into_iter().enumerate() {
            let name = subagent
                .trajectory_id
                .clone()
                .or(subagent.session_id.clone())
                .or(subagent.agent.name.clone());
            let thread = self.thread(&name.unwrap_or_else(|| "subagent".into()));
            self.trajectory(
                subagent,
                Some(thread),
                spot,
                &format!("{key}subagent_trajectories[{index}]."),
                folder,
            )?;
        }
        for path in paths {
            for document in self.beside(folder, &path)?.unwrap_or_default() {
                let thread = self.thread(document.member.file_name().trim_end_matches(".json"));
                self.document(document, Some(thread))?;
            }
        }
        Ok(())
    }

    /// A name that no thread has yet.
    fn thread(&mut self, name: &str) -> String {
        let asked = self.asked.entry(name.to_owned()).or_default();
        loop {
            *asked += 1;
            let name = if *asked == 1 { name.to_owned() } else { format!("{name}-{asked}") };
            if self.threads.insert(name.clone()) {
                return name;
            }
        }
    }

    /// The trajectories of a file beside the main one, once.
    fn beside(&mut self, folder: &str, name: &str) -> Result<Option<Vec<Document>>, HarnessError> {
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if path.contains("..") || path.starts_with('/') || self.read.contains(&path) {
            return Ok(None);
        }
        let Some(member) =
            self.input.beside(parent)?.into_iter().find(|member| member.listed == path)
        else {
            return Ok(None);
        };
        self.read.insert(path);
        if let Ok(Some(other)) =
            detect::told(&member).map(|found| found.filter(|&found| found != Harness::Atif))
        {
            let message = format!(
                "{name} looks like {} and not like an ATIF trajectory; it is not read",
                other.title()
            );
            self.draft.warn(&Location::line(&member.name, 1), "", "no-trajectory", message);
            return Ok(Some(Vec::new()));
        }
        Ok(Some(super::read(&member, &mut self.draft).unwrap_or_else(|error| {
            self.draft.unread(&member, Relation::Part, &error);
            Vec::new()
        })))
    }
}

impl Trajectory {
    /// The trajectory, or the key that is at fault and why.
    fn deserialize_checked(value: Value) -> Result<Self, (String, String)> {
        serde_path_to_error::deserialize(value)
            .map_err(|error| (error.path().to_string(), error.inner().to_string()))
    }
}
