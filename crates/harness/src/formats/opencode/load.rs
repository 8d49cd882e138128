//! The files of a session: an export, or the records of a storage folder.
use pleach_tree::ReadOptions;
use rustc_hash::{FxHashMap, FxHashSet};

use super::record::{Export, Info, Part, SessionRecord, WithParts};
use super::session;
use crate::core::format::Format;
use crate::core::input::{Member, Relation};
use crate::core::script::{Script, Spot};
use crate::core::shape;
use crate::core::shape::Shape;
use crate::{Conversion, HarnessError, Input};

/// How a session of OpenCode is told from other files.
pub(crate) const FORMAT: Format =
    Format::new("opencode", "an OpenCode session", is_session, convert)
        .with_folder(is_storage)
        .with_least(is_session);

fn is_session(shape: &Shape) -> bool {
    is_export(shape) || is_record(shape)
}

fn is_export(shape: &Shape) -> bool {
    shape.has("info.id")
        && shape.kind("messages").is_some()
        && (shape.has("info.projectID") || shape.has("messages[].info"))
}

fn is_record(shape: &Shape) -> bool {
    shape.has_all(&["id", "projectID", "time"]) && !shape.has("sessionID")
}

/// Whether a folder is one session: one that has no parent, with those of its sub-agents, or one
/// alone.
fn is_storage(input: &Input) -> Result<bool, HarnessError> {
    let sessions = session_files(&input.members()?);
    let mut roots = 0;
    for member in &sessions {
        let shape = shape::first_shape(member)?.filter(is_record);
        roots += usize::from(shape.is_some_and(|shape| !shape.has("parentID")));
        if roots > 1 {
            return Ok(false);
        }
    }
    match sessions.as_slice() {
        [only] if roots == 0 => shape::is_of(only, is_record),
        _ => Ok(roots == 1),
    }
}

fn session_files(members: &[Member]) -> Vec<Member> {
    let folder = |listed: &str| listed.split('/').rev().nth(2).map(str::to_owned);
    members
        .iter()
        .filter(|member| folder(&member.listed).as_deref() == Some("session"))
        .cloned()
        .collect()
}

/// A session, its messages, each with the place where it was read.
pub(super) struct Loaded {
    pub(super) session: SessionRecord,
    pub(super) spot: Spot,
    pub(super) messages: Vec<(WithParts, Spot)>,
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let mut script = Script::new("opencode", options);
    if input.is_folder() {
        let members = input.members()?;
        let (mut sessions, index) = (Vec::new(), Index::of(&members));
        for member in session_files(&members) {
            sessions.extend(read_session(&mut script, &member, &index)?);
        }
        sessions.sort_by(|a, b| a.session.id.cmp(&b.session.id));
        let (mut roots, children): (Vec<Loaded>, Vec<Loaded>) =
            sessions.into_iter().partition(|loaded| loaded.session.parent.is_none());
        // Without a session that has no parent, the folder holds a sub-agent alone.
        let mut children = children.into_iter();
        let main = match (roots.len(), roots.pop().or_else(|| children.next())) {
            (0 | 1, Some(main)) => main,
            _ => return Err(HarnessError::Folder { file: input.name().to_string() }),
        };
        return play(script, main, children.collect());
    }
    let main = input.main();
    let exported = shape::is_of(&main, is_export)?;
    if !exported {
        let Some(loaded) = read_record(&mut script, input, &main)? else { return script.play() };
        let mut children = Vec::new();
        for member in sub_agents(&mut script, input, &main)? {
            match read_record(&mut script, input, &member) {
                Ok(child) => children.extend(child),
                Err(error) => script.draft.unread(&member, Relation::Part, &error),
            }
        }
        return play(script, loaded, children);
    }
    let file = script.draft.file(&main);
    let (documents, at) = main.document::<Export>(options, &mut script.draft.report)?;
    let spot = Spot { file, at };
    let Some(export) = documents.into_iter().next() else { return script.play() };
    let messages = export.messages.into_iter().map(|message| (message, spot.clone())).collect();
    play(script, Loaded { session: export.info, spot, messages }, Vec::new())
}

fn play(
    mut script: Script,
    main: Loaded,
    children: Vec<Loaded>,
) -> Result<Conversion, HarnessError> {
    script.draft.header.harness_version.clone_from(&main.session.version);
    missing(&mut script, std::iter::once(&main).chain(&children));
    session::write(&mut script, main, 0);
    for child in children {
        let conversation = script.conversation(child.session.id.clone());
        session::write(&mut script, child, conversation);
    }
    script.play()
}

/// Warns of every session that a tool had its work done in and that is not there.
fn missing<'l>(script: &mut Script, sessions: impl Iterator<Item = &'l Loaded> + Clone) {
    let mut known: FxHashSet<&str> =
        sessions.clone().map(|loaded| loaded.session.id.as_str()).collect();
    let messages = sessions.flat_map(|loaded| &loaded.messages);
    for (message, spot) in messages {
        for child in message.parts.iter().filter_map(Part::child) {
            if known.insert(child) {
                let text = format!(
                    "the sub-agent's session {child} is not there, so its calls are missing; an export holds one session, so export that one too"
                );
                script.draft.warn(&spot.at, "state.metadata.sessionId", "missing-session", text);
            }
        }
    }
}

/// One file of a storage folder.
fn record<T: serde::de::DeserializeOwned>(
    script: &mut Script,
    member: &Member,
) -> Result<Option<(T, Spot)>, HarnessError> {
    let file = script.draft.file(member);
    let options = script.draft.options;
    let (records, at) = member.document::<T>(options, &mut script.draft.report)?;
    Ok(records.into_iter().next().map(|record| (record, Spot { file, at })))
}

/// The records of sessions beside one whose parent it is, or the parent of whose parent, in the
/// order of their names; a record that cannot be read may be one of them, which is a warning.
fn sub_agents(
    script: &mut Script,
    input: &Input,
    main: &Member,
) -> Result<Vec<Member>, HarnessError> {
    let text = |shape: &Shape, key: &str| shape.text(key).map(str::to_owned);
    let Some(own) = shape::first_shape(main)?.and_then(|shape| text(&shape, "id")) else {
        return Ok(Vec::new());
    };
    let mut open = Vec::new();
    for member in input.beside("")?.into_iter().filter(|member| member.listed != main.listed) {
        match shape::first_shape(&member) {
            Ok(shape) => {
                let child =
                    |shape: Shape| Some((member, text(&shape, "id")?, text(&shape, "parentID")?));
                open.extend(shape.filter(is_record).and_then(child));
            }
            Err(error) => script.draft.unread(&member, Relation::Part, &error),
        }
    }
    let (mut ids, mut found) = (FxHashSet::from_iter([own]), Vec::new());
    loop {
        let (children, others): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|(_, _, parent)| ids.contains(parent));
        if children.is_empty() {
            break;
        }
        open = others;
        for (member, id, _) in children {
            ids.insert(id);
            found.push(member);
        }
    }
    found.sort_by(|a, b| a.listed.cmp(&b.listed));
    Ok(found)
}

/// A session of a storage folder, given by its record, with its messages in the folders beside that
/// of the record.
fn read_record(
    script: &mut Script,
    input: &Input,
    record: &Member,
) -> Result<Option<Loaded>, HarnessError> {
    let stem = |member: &Member| member.file_name().trim_end_matches(".json").to_owned();
    let mut members = input.beside(&format!("../../message/{}", stem(record)))?;
    for member in members.clone() {
        members.extend(input.beside(&format!("../../part/{}", stem(&member)))?);
    }
    read_session(script, record, &Index::of(&members))
}

/// The files of a storage folder by the two folders that each lies in, which are its kind and the
/// id of what it is part of.
struct Index<'m>(FxHashMap<String, Vec<&'m Member>>);

impl<'m> Index<'m> {
    fn of(members: &'m [Member]) -> Self {
        let mut index: FxHashMap<String, Vec<&Member>> = FxHashMap::default();
        for member in members {
            let mut names = member.listed.rsplit('/').skip(1);
            if let (Some(id), Some(kind)) = (names.next(), names.next()) {
                index.entry(format!("{kind}/{id}")).or_default().push(member);
            }
        }
        index.values_mut().for_each(|files| files.sort_by(|a, b| a.file_name().cmp(b.file_name())));
        Self(index)
    }

    fn inside(&self, kind: &str, id: &str) -> &[&'m Member] {
        self.0.get(&format!("{kind}/{id}")).map_or(&[], Vec::as_slice)
    }
}

/// A session and its messages out of the files of a storage folder, in the order of their ids.
fn read_session(
    script: &mut Script,
    member: &Member,
    index: &Index,
) -> Result<Option<Loaded>, HarnessError> {
    let Some((session, spot)) = record::<SessionRecord>(script, member)? else { return Ok(None) };
    let mut messages = Vec::new();
    for member in index.inside("message", &session.id) {
        let Some((info, spot)) = record::<Info>(script, member)? else { continue };
        let mut parts = Vec::new();
        for member in index.inside("part", &info.id) {
            parts.extend(record::<Part>(script, member)?.map(|(part, _)| part));
        }
        messages.push((WithParts { info, parts }, spot));
    }
    Ok(Some(Loaded { session, spot, messages }))
}
