//! Resolution of revisions to commits.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Deserialize;

use super::place::Place;
use super::refusal::{Refusal, wrong};
use super::{Inner, Result};
use crate::fork::OwnLock;

/// Commits by endpoint, repository and revision, shared by the whole process.
static COMMITS: OwnLock<BTreeMap<String, String>> = OwnLock::new(|| Mutex::new(told_commits()));
/// Environment variable that passes the commits to workers.
const COMMITS_VARIABLE: &str = "GRISTMILL_HF_COMMITS";

fn told_commits() -> BTreeMap<String, String> {
    let text = std::env::var(COMMITS_VARIABLE).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Returns the resolved commits as a variable for workers. Returns `None` if no revision was resolved.
pub(in crate::store) fn variable() -> Option<(&'static str, std::ffi::OsString)> {
    let commits = COMMITS.lock();
    let text = serde_json::to_string(&*commits).ok().filter(|_| !commits.is_empty())?;
    Some((COMMITS_VARIABLE, text.into()))
}

impl Inner {
    /// Resolves a revision to a commit, which the process keeps from then on.
    pub(super) async fn commit(&self, place: &Place) -> Result<String> {
        if place.is_pinned() {
            return Ok(place.revision.clone());
        }
        let known = format!("{}datasets/{}@{}", self.endpoint, place.repository, place.revision);
        // Many files are opened at once. The first request resolves the commit for all of them.
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
            return Err(wrong(Refusal::NotUnderstood("an invalid commit")));
        }
        // If two clients resolve a revision concurrently, the first result is kept.
        Ok(COMMITS.lock().entry(known).or_insert(sha).clone())
    }
}
