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
    /// The rollout, where a file holds several.
    pub(super) rollout: Option<String>,
    /// The name of the thread; none where it goes on from the part before it.
    pub(super) thread: Option<String>,
    /// The file that it is all of.
    pub(super) file: Option<String>,
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
        rollout: None,
        threads: FxHashSet::default(),
        asked: FxHashMap::default(),
    };
    let session = |document: &Document| {
        let id = |key: &&str| document.value.get(*key)?.as_str().map(str::to_owned);
        ["session_id", "trajectory_id"].iter().find_map(id)
    };
    let several = documents.iter().filter_map(session).collect::<FxHashSet<String>>().len() > 1;
    for document in documents {
        files.rollout = session(&document).filter(|_| several);
        let thread = files.thread("main");
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
    Steps::of(parts).play(&mut script);
    script.play()
}

/// Where a trajectory stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    /// The path of keys to it.
    key: &'p str,
    /// The folder of its file.
    folder: &'p str,
    /// The file that it is all of.
    file: Option<&'p str>,
}

/// A name that a trajectory in a folder gives, from the folder of the main file.
pub(super) fn in_folder(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The files of a run, while they are gathered.
struct Files<'i> {
    input: &'i Input,
    draft: Draft,
    parts: Vec<Part>,
    read: FxHashSet<String>,
    /// The rollout that is read, where a file holds several.
    rollout: Option<String>,
    /// Names of threads in their rollouts, and how many were asked for by each name.
    threads: FxHashSet<(Option<String>, String)>,
    asked: FxHashMap<(Option<String>, String), usize>,
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
        let place = Place { key: "", folder: &folder, file: Some(&member.listed) };
        self.trajectory(trajectory, thread, &spot, place)
    }

    fn trajectory(
        &mut self,
        mut trajectory: Trajectory,
        thread: Option<String>,
        spot: &Spot,
        Place { key, folder, file }: Place<'_>,
    ) -> Result<(), HarnessError> {
        let subagents = trajectory.subagent_trajectories.take().unwrap_or_default();
        let continued = trajectory.continued_trajectory_ref.take();
        let named = |(index, step)| {
            let key = format!("{key}steps[{index}].observation.results");
            let paths = super::handoff::referred(step).into_iter().filter_map(|named| named.path);
            paths.map(move |path| (key.clone(), path)).collect::<Vec<_>>()
        };
        let paths: Vec<(String, String)> =
            trajectory.steps.iter().enumerate().flat_map(named).collect();
        self.parts.push(Part {
            trajectory,
            rollout: self.rollout.clone(),
            thread,
            file: file.map(str::to_owned),
            spot: spot.clone(),
            key: key.to_owned(),
        });
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
            let key = format!("{key}subagent_trajectories[{index}].");
            self.trajectory(subagent, Some(thread), spot, Place { key: &key, folder, file: None })?;
        }
        for (key, path) in paths {
            let documents = self.beside(folder, &path)?;
            if documents.is_none() && self.read.insert(in_folder(folder, &path)) {
                let message = format!(
                    "the step refers to {path}, which does not lie beside it: its calls are missing, and so is what later contexts hold of it"
                );
                self.draft.warn(&spot.at, &key, "missing-file", message);
            }
            for document in documents.unwrap_or_default() {
                let thread = self.thread(document.member.file_name().trim_end_matches(".json"));
                self.document(document, Some(thread))?;
            }
        }
        Ok(())
    }

    /// A name that no thread has yet.
    fn thread(&mut self, name: &str) -> String {
        let rollout = self.rollout.clone();
        let asked = self.asked.entry((rollout.clone(), name.to_owned())).or_default();
        loop {
            *asked += 1;
            let name = if *asked == 1 { name.to_owned() } else { format!("{name}-{asked}") };
            if self.threads.insert((rollout.clone(), name.clone())) {
                return name;
            }
        }
    }

    /// The trajectories of a file beside the main one, once.
    fn beside(&mut self, folder: &str, name: &str) -> Result<Option<Vec<Document>>, HarnessError> {
        let path = in_folder(folder, name);
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
