//! Files of a folder that belong to a session beside them, so that no session is counted twice.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The files that sessions have read as their own beside the one that each is named by, such as
/// those of sub-agents.
#[derive(Debug, Default)]
pub(crate) struct Beside(HashSet<PathBuf>);

impl Beside {
    /// Adds what a session has read, unless its own file is one that another session has.
    pub(crate) fn add(&mut self, session: &Path, read: &[PathBuf]) {
        let own = std::fs::canonicalize(session).ok();
        if own.as_ref().is_none_or(|own| !self.0.contains(own)) {
            self.0.extend(read.iter().filter(|&read| Some(read) != own.as_ref()).cloned());
        }
    }

    /// Whether a session has read this file as its own.
    pub(crate) fn has(&self, file: &Path) -> bool {
        std::fs::canonicalize(file).is_ok_and(|file| self.0.contains(&file))
    }
}

/// The files that a session's header names, relative to its folder, where they are.
pub(crate) fn named(session: &Path, listed: &[String]) -> Vec<PathBuf> {
    let folder = if session.is_dir() { session } else { session.parent().unwrap_or(Path::new("")) };
    listed.iter().filter_map(|name| std::fs::canonicalize(folder.join(name)).ok()).collect()
}
