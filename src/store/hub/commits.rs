//! Commits that revisions stand for.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Deserialize;

use super::place::Place;
use super::refusal::{Refusal, wrong};
use super::{Inner, Result};
use crate::fork::OwnLock;

/// Commits of revisions, by endpoint, repository and revision: one for the whole process.
static COMMITS: OwnLock<BTreeMap<String, String>> = OwnLock::new(|| Mutex::new(told_commits()));
/// The variable by which workers are told of them.
const COMMITS_VARIABLE: &str = "GRISTMILL_HF_COMMITS";

fn told_commits() -> BTreeMap<String, String> {
    let text = std::env::var(COMMITS_VARIABLE).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The commits that this process reads, as a variable for its workers; `None` where it has read none.
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(in crate::store) fn variable() -> Option<(&'static str, std::ffi::OsString)> {
    let commits = COMMITS.lock();
    let text = serde_json::to_string(&*commits).ok().filter(|_| !commits.is_empty())?;
    Some((COMMITS_VARIABLE, text.into()))
}

impl Inner {
    /// The commit that a revision stands for, in this process from now on.
    pub(super) async fn commit(&self, place: &Place) -> Result<String> {
        if place.is_pinned() {
            return Ok(place.revision.clone());
        }
        let known = format!("{}datasets/{}@{}", self.endpoint, place.repository, place.revision);
        // Files are opened many at a time, and one of them asks for all.
        let _asking = self.asking.lock().await;
        if let Some(commit) = COMMITS.lock().get(&known) {
            return Ok(commit.clone());
        }
        let [org, name] = place.names();
        let url = self.url(["api", "datasets", org, name, "revision", &place.revision]);
        let response = self.ask("GET", &url, None).await?;
        #[derive(Deserialize)]
        struct Revision {
            sha: String,
        }
        let Revision { sha } = self.json(place, response).await?;
        if !(Place { revision: sha.clone(), ..place.clone() }).is_pinned() {
            return Err(wrong(Refusal::NotUnderstood("a commit that is none")));
        }
        // Of two clients that ask at the same time, the first is right.
        Ok(COMMITS.lock().entry(known).or_insert(sha).clone())
    }
}
