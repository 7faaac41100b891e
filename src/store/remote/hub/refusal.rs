//! Refusals of the hub, with remedies.

use object_store::Error as E;
use object_store::client::HttpResponse;

use super::Inner;
use super::place::Place;

/// Reason for a refusal of the hub, with a remedy.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("no place in a dataset: write hf://datasets/org/name@revision/path, where the revision may be left out")]
    NoDataset,
    #[error(
        "the dataset {repository} is gated: accept its conditions at {page}, and set HF_TOKEN to a token of the same account"
    )]
    Gated { repository: String, page: String },
    #[error("the hub has no dataset {repository}, or it is private: set HF_TOKEN to a token that may read it")]
    NoRepository { repository: String },
    #[error("the dataset {repository} has no revision {revision}: name a branch, a tag or a commit")]
    NoRevision { repository: String, revision: String },
    #[error("the dataset {repository} has no such file in this revision")]
    NoFile { repository: String },
    #[error("the token may not read the dataset {repository}: grant HF_TOKEN access in the token settings of the hub")]
    Denied { repository: String },
    #[error("HF_TOKEN contains characters that no token has")]
    BadToken,
    #[error("the hub answered {0}")]
    Status(u16),
    #[error("the hub gave {0}")]
    NotUnderstood(&'static str),
    #[error("the hub gave no address of the bytes that may be followed")]
    NoAddress,
    #[error("the hub did not report the size of the file")]
    NoSize,
    #[error("the hub gave no answer within {0:.1} s, the time limit: raise GRISTMILL_STORE_TIMEOUT")]
    NoAnswer(f64),
    #[error("the file changed since it was opened: read a commit, or open it again")]
    Changed,
    #[error("the server answers with other bytes than those that were asked for")]
    WrongRange,
    #[error("the server does not support range requests")]
    NoRanges,
}

/// Returns the text of a hub error that no retry can fix. Returns `None` for all other errors.
pub(in crate::store) fn refusal(error: &E) -> Option<String> {
    let refusal = std::error::Error::source(error)?.downcast_ref::<Refusal>()?;
    let is_final = !matches!(refusal, Refusal::Status(_) | Refusal::WrongRange | Refusal::NoRanges);
    is_final.then(|| refusal.to_string())
}

pub(super) fn wrong(source: impl std::error::Error + Send + Sync + 'static) -> E {
    E::Generic { store: "Hugging Face's hub", source: Box::new(source) }
}

/// Returns the error code in a response of the hub.
pub(super) fn error_code(response: &HttpResponse) -> Option<&str> {
    response.headers().get("x-error-code")?.to_str().ok()
}

impl Inner {
    /// Converts a refusal into an error, by its status and the hub's error code.
    pub(super) fn refused(&self, place: &Place, response: &HttpResponse) -> E {
        let (repository, path) = (place.repository.clone(), format!("{}/{}", place.repository, place.path));
        let page = || format!("{}datasets/{}", self.endpoint, place.repository);
        match (response.status().as_u16(), error_code(response)) {
            (_, Some("GatedRepo")) => {
                let source = Box::new(Refusal::Gated { repository, page: page() });
                E::PermissionDenied { path, source }
            }
            (_, Some("RevisionNotFound")) => {
                let source = Box::new(Refusal::NoRevision { repository, revision: place.revision.clone() });
                E::NotFound { path, source }
            }
            (_, Some("EntryNotFound")) => E::NotFound { path, source: Box::new(Refusal::NoFile { repository }) },
            (401, _) | (_, Some("RepoNotFound")) => {
                E::Unauthenticated { path, source: Box::new(Refusal::NoRepository { repository }) }
            }
            (403, _) => E::PermissionDenied { path, source: Box::new(Refusal::Denied { repository }) },
            (404, _) => E::NotFound { path, source: Box::new(Refusal::NoFile { repository }) },
            (status, _) => wrong(Refusal::Status(status)),
        }
    }
}
