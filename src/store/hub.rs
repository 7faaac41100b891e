//! Datasets of Hugging Face's hub, read where they lie: `hf://datasets/org/name@revision/path`.
//!
//! A revision is asked for its commit once per process, and workers are told of it, so that all files are of one commit. A file is asked
//! for the address of its bytes, which is signed, lies on another host as a rule, and ends some time later: it is kept and asked for
//! again once it is refused. The token goes to the hub alone.
//!
//! Source of the protocol: the hub's OpenAPI description, its page on rate limits, and what `huggingface_hub` 1.2 sends.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use object_store::client::{HttpClient, HttpConnector, HttpRequest, HttpRequestBody, HttpResponse};
use object_store::path::Path as Key;
use object_store::{
    ClientOptions, CopyOptions, Error as E, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use serde::Deserialize;
use url::Url;

use super::client::Redirects;
use super::service::Connector;
use crate::error::{Error, Result as Checked};
use crate::fork::OwnLock;
use crate::sync::Locked;

type Result<T> = object_store::Result<T>;

/// The store of all datasets of a hub.
#[derive(Clone)]
pub(super) struct Hub(Arc<Inner>);

struct Inner {
    client: HttpClient,
    /// Ends with a slash.
    endpoint: Url,
    token: Option<String>,
    /// Attempts at a request here; those that are read with are repeated by who reads.
    attempts: u32,
    /// Held by the one that asks for a commit.
    asking: tokio::sync::Mutex<()>,
    /// The places in which the bytes of files were last found.
    targets: Mutex<HashMap<Key, Target>>,
}

/// The place of a file's bytes.
#[derive(Clone)]
struct Target {
    url: Url,
    size: u64,
    tag: Option<String>,
}

/// A place in a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// `org/name`.
    repository: String,
    revision: String,
    path: String,
    /// `org/name@revision`, as it was given.
    root: String,
}

/// Redirects from one address of the hub to another.
const REDIRECTS: usize = 5;

impl Place {
    fn parse(key: &str) -> Result<Self> {
        let mut parts = key.splitn(3, '/');
        let (org, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (name, revision) = name.split_once('@').unwrap_or((name, "main"));
        if org.is_empty() || name.is_empty() || revision.is_empty() || org.contains('@') {
            return Err(wrong(Refusal::NoDataset));
        }
        // Names of branches have slashes, which are written as they are in URLs.
        let revision = match revision {
            "~parquet" => "refs/convert/parquet".to_owned(),
            other => other.replace("%2F", "/").replace("%2f", "/"),
        };
        let path = parts.next().unwrap_or_default();
        let root = key[..key.len() - path.len()].trim_end_matches('/').to_owned();
        Ok(Self { repository: format!("{org}/{name}"), revision, path: path.to_owned(), root })
    }

    /// Whether the revision is a commit already.
    fn is_pinned(&self) -> bool {
        self.revision.len() == 40 && self.revision.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

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
pub(super) fn variable() -> Option<(&'static str, std::ffi::OsString)> {
    let commits = COMMITS.lock();
    let text = serde_json::to_string(&*commits).ok().filter(|_| !commits.is_empty())?;
    Some((COMMITS_VARIABLE, text.into()))
}

/// The client for `hf://datasets`, which tries each request so often.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for other roots, and an endpoint that is no URL.
pub(super) fn client(root: &str, attempts: u32) -> Checked<Arc<dyn ObjectStore>> {
    if root != "hf://datasets" {
        return Err(Error::config(Refusal::NoDataset.to_string()));
    }
    let endpoint = std::env::var("HF_ENDPOINT").ok().filter(|text| !text.is_empty());
    let hub = Hub::new(endpoint.as_deref().unwrap_or("https://huggingface.co"), token(), attempts)?;
    Ok(Arc::new(hub))
}

/// The token of the environment, or the one that `hf auth login` has written.
fn token() -> Option<String> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || {
        let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")));
        variable("HF_HOME").map(PathBuf::from).or_else(|| Some(cache?.join("huggingface")))
    };
    let given = variable("HF_TOKEN").and_then(|token| token.into_string().ok());
    let path = || variable("HF_TOKEN_PATH").map(PathBuf::from).or_else(|| Some(home()?.join("token")));
    let token = given.or_else(|| std::fs::read_to_string(path()?).ok())?.trim().to_owned();
    (!token.is_empty()).then_some(token)
}

impl Hub {
    fn new(endpoint: &str, token: Option<String>, attempts: u32) -> Checked<Self> {
        let text = format!("{}/", endpoint.trim_end_matches('/'));
        let endpoint = Url::parse(&text).ok().filter(|url| url.has_host() && crate::place::is_web(url.scheme()));
        let endpoint = endpoint.ok_or_else(|| Error::config("HF_ENDPOINT is no URL of a web server"))?;
        let options = ClientOptions::new().with_allow_http(endpoint.scheme() == "http");
        let client = Connector(Redirects::Refused).connect(&options);
        let client = client.map_err(|e| Error::config(format!("the hub's client cannot be set up: {e}")))?;
        Ok(Self(Arc::new(Inner {
            client,
            endpoint,
            token,
            attempts,
            asking: Default::default(),
            targets: Mutex::default(),
        })))
    }
}

impl Inner {
    /// An address of the hub, of these parts.
    fn url<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    /// Asks the hub or another server. The token is for the hub alone.
    async fn ask(&self, method: &str, url: &Url, range: Option<&Range<u64>>) -> Result<HttpResponse> {
        let mut made = 1;
        loop {
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            *request.method_mut() = method.parse().map_err(wrong)?;
            *request.uri_mut() = url.as_str().parse().map_err(wrong)?;
            let headers = request.headers_mut();
            headers.insert("accept-encoding", "identity".parse().map_err(wrong)?);
            if let Some(range) = range {
                headers.insert("range", format!("bytes={}-{}", range.start, range.end - 1).parse().map_err(wrong)?);
            }
            if let Some(token) = self.token.as_ref().filter(|_| url.origin() == self.endpoint.origin()) {
                // What is wrong with it is not quoted.
                let header = format!("Bearer {token}").parse().map_err(|_| wrong(Refusal::BadToken))?;
                headers.insert("authorization", header);
            }
            let answer = self.client.execute(request).await.map_err(wrong);
            let is_busy = |response: &HttpResponse| matches!(response.status().as_u16(), 408 | 429 | 500..);
            if made >= self.attempts || answer.as_ref().is_ok_and(|response| !is_busy(response)) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(100 << made.min(6))).await;
            made += 1;
        }
    }

    /// The commit that a revision stands for, in this process from now on.
    async fn commit(&self, place: &Place) -> Result<String> {
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

    /// The answer of the hub as JSON.
    async fn json<T: serde::de::DeserializeOwned>(&self, place: &Place, response: HttpResponse) -> Result<T> {
        if !response.status().is_success() {
            return Err(self.refused(place, &response));
        }
        let bytes = response.into_body().bytes().await.map_err(wrong)?;
        serde_json::from_slice(&bytes).map_err(|_| wrong(Refusal::NotUnderstood("an answer that is not understood")))
    }

    /// Finds out where the bytes of a file are, how many, and what tells them from others.
    async fn target(&self, key: &Key) -> Result<Target> {
        if let Some(target) = self.targets.locked().get(key) {
            return Ok(target.clone());
        }
        let place = Place::parse(key.as_ref())?;
        let commit = self.commit(&place).await?;
        let [org, name] = place.names();
        let mut url = self.url(["datasets", org, name, "resolve", &commit].into_iter().chain(place.path.split('/')));
        for _ in 0..REDIRECTS {
            let response = self.ask("HEAD", &url, None).await?;
            let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
            let next = match response.status().as_u16() {
                200 => None,
                300..400 => {
                    Some(header("location").and_then(|to| url.join(to).ok()).ok_or_else(|| wrong(Refusal::NoAddress))?)
                }
                _ => return Err(self.refused(&place, &response)),
            };
            let is_elsewhere = next.as_ref().is_some_and(|next| next.origin() != self.endpoint.origin());
            if let Some(next) = next.as_ref().filter(|_| !is_elsewhere) {
                url = next.clone();
                continue;
            }
            if next.as_ref().is_some_and(|next| next.scheme() != "https" && url.scheme() == "https") {
                return Err(wrong(Refusal::NoAddress));
            }
            let length = if is_elsewhere { "x-linked-size" } else { "content-length" };
            let size = header(length).and_then(|size| size.parse().ok()).ok_or_else(|| wrong(Refusal::NoSize))?;
            let tag = header("x-linked-etag").or_else(|| header("etag"));
            let tag = tag.map(|tag| tag.strip_prefix("W/").unwrap_or(tag).to_owned());
            let target = Target { url: next.unwrap_or(url), size, tag };
            self.targets.locked().insert(key.clone(), target.clone());
            return Ok(target);
        }
        Err(wrong(Refusal::NoAddress))
    }

    /// The bytes of a file from where they were last found, or from where they are now.
    async fn bytes(&self, key: &Key, options: &GetOptions) -> Result<(Target, Range<u64>, HttpResponse)> {
        for is_last in [false, true] {
            let target = self.target(key).await?;
            let range = range_of(options.range.as_ref(), target.size);
            let response = self.ask("GET", &target.url, Some(&range)).await?;
            match response.status().as_u16() {
                206 if answers(&response, &range, target.size) => return Ok((target, range, response)),
                206 => return Err(wrong(Refusal::WrongRange)),
                200 if range == (0..target.size) => return Ok((target, range, response)),
                200 => return Err(E::NotSupported { source: Box::new(Refusal::NoRanges) }),
                // Addresses end.
                401 | 403 | 404 | 410 if !is_last && target.url.origin() != self.endpoint.origin() => {
                    self.targets.locked().remove(key);
                }
                _ => return Err(self.refused(&Place::parse(key.as_ref())?, &response)),
            }
        }
        Err(wrong(Refusal::NoAddress))
    }

    /// Lists a folder, and what is below it where `recursive`.
    async fn tree(&self, prefix: Option<&Key>, recursive: bool) -> Result<ListResult> {
        let place = Place::parse(prefix.map_or("", Key::as_ref))?;
        let commit = self.commit(&place).await?;
        let [org, name] = place.names();
        let parts = ["api", "datasets", org, name, "tree", &commit];
        let mut url = self.url(parts.into_iter().chain(place.path.split('/').filter(|part| !part.is_empty())));
        url.query_pairs_mut().append_pair("recursive", if recursive { "true" } else { "false" });
        let (mut objects, mut common_prefixes) = (Vec::new(), Vec::new());
        let mut next = Some(url);
        while let Some(url) = next {
            let response = self.ask("GET", &url, None).await?;
            if response.status().as_u16() == 404 && error_code(&response) == Some("EntryNotFound") {
                break;
            }
            next = self.next_page(&url, &response)?;
            for item in self.json::<Vec<Item>>(&place, response).await? {
                let location = Key::parse(format!("{}/{}", place.root, item.path))?;
                match item.is_folder() {
                    true => common_prefixes.push(location),
                    false => objects.push(item.meta(location)),
                }
            }
        }
        Ok(ListResult { common_prefixes, objects, extensions: Default::default() })
    }

    /// The address of the page behind this one, which is one of the hub's.
    fn next_page(&self, url: &Url, response: &HttpResponse) -> Result<Option<Url>> {
        let link = response.headers().get("link").and_then(|value| value.to_str().ok());
        let Some(to) = link.and_then(next_link) else { return Ok(None) };
        match url.join(to).ok().filter(|to| to.origin() == self.endpoint.origin()) {
            Some(to) => Ok(Some(to)),
            None => Err(wrong(Refusal::NotUnderstood("a next page that is on another server"))),
        }
    }

    /// Says what a refusal means, by the code that the hub adds to it.
    fn refused(&self, place: &Place, response: &HttpResponse) -> E {
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

impl Place {
    /// The organisation and the name.
    fn names(&self) -> [&str; 2] {
        self.repository.split_once('/').map_or([&*self.repository, ""], |(org, name)| [org, name])
    }
}

/// A file or folder of a listing.
#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    oid: Option<String>,
    lfs: Option<Large>,
}

/// The part of a listing that tells of a file whose bytes lie elsewhere.
#[derive(Deserialize)]
struct Large {
    oid: String,
    size: u64,
}

impl Item {
    fn is_folder(&self) -> bool {
        self.kind == "directory"
    }

    fn meta(self, location: Key) -> ObjectMeta {
        let (oid, size) = self.lfs.map_or((self.oid, self.size), |large| (Some(large.oid), large.size));
        meta(location, size, oid.map(|oid| format!("\"{oid}\"")))
    }
}

fn meta(location: Key, size: u64, e_tag: Option<String>) -> ObjectMeta {
    ObjectMeta { location, last_modified: SystemTime::UNIX_EPOCH.into(), size, e_tag, version: None }
}

/// The reason that the hub gives for a refusal.
fn error_code(response: &HttpResponse) -> Option<&str> {
    response.headers().get("x-error-code")?.to_str().ok()
}

/// The address of `rel="next"` in a `Link` header (RFC 8288).
fn next_link(link: &str) -> Option<&str> {
    let is_next = |link: &&str| link.split(';').skip(1).any(|part| part.trim().replace('"', "") == "rel=next");
    link.split(',').find(is_next)?.split(';').next()?.trim().strip_prefix('<')?.strip_suffix('>')
}

fn range_of(asked: Option<&GetRange>, size: u64) -> Range<u64> {
    let range = match asked {
        None => 0..size,
        Some(GetRange::Bounded(range)) => range.start..range.end.min(size),
        Some(GetRange::Offset(start)) => *start..size,
        Some(GetRange::Suffix(len)) => size.saturating_sub(*len)..size,
    };
    range.start.min(range.end)..range.end.max(1)
}

/// Whether an answer says that it is of this range of so many bytes.
fn answers(response: &HttpResponse, range: &Range<u64>, size: u64) -> bool {
    let said = response.headers().get("content-range").and_then(|said| said.to_str().ok());
    said == Some(&*format!("bytes {}-{}/{size}", range.start, range.end - 1))
}

/// Why the hub does not give what is asked for, and what to do.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("no place in a dataset: write hf://datasets/org/name@revision/path, where the revision may be left out")]
    NoDataset,
    #[error(
        "the dataset {repository} is gated: accept its conditions at {page}, and set HF_TOKEN to a token of that account"
    )]
    Gated { repository: String, page: String },
    #[error("the hub has no dataset {repository}, or it is private: set HF_TOKEN to a token that may read it")]
    NoRepository { repository: String },
    #[error("the dataset {repository} has no revision {revision}: name a branch, a tag or a commit")]
    NoRevision { repository: String, revision: String },
    #[error("the dataset {repository} has no such file in this revision")]
    NoFile { repository: String },
    #[error(
        "the token may not read the dataset {repository}: give HF_TOKEN the right to, at the hub's settings of tokens"
    )]
    Denied { repository: String },
    #[error("HF_TOKEN holds letters that no token has")]
    BadToken,
    #[error("the hub answered {0}")]
    Status(u16),
    #[error("the hub gave {0}")]
    NotUnderstood(&'static str),
    #[error("the hub gave no address of the bytes that may be followed")]
    NoAddress,
    #[error("the hub did not say how large the file is")]
    NoSize,
    #[error("the server answers with other bytes than those that were asked for")]
    WrongRange,
    #[error("the server does not answer for ranges")]
    NoRanges,
}

/// The text of an error that is the hub's own and that no other attempt mends; `None` for all others.
pub(super) fn refusal(error: &E) -> Option<String> {
    let refusal = std::error::Error::source(error)?.downcast_ref::<Refusal>()?;
    let is_final = !matches!(refusal, Refusal::Status(_) | Refusal::WrongRange | Refusal::NoRanges);
    is_final.then(|| refusal.to_string())
}

fn wrong(source: impl std::error::Error + Send + Sync + 'static) -> E {
    E::Generic { store: "Hugging Face's hub", source: Box::new(source) }
}

fn read_only(operation: &str) -> E {
    E::NotImplemented { operation: operation.to_owned(), implementer: "Hugging Face's hub".to_owned() }
}

#[async_trait]
impl ObjectStore for Hub {
    async fn get_opts(&self, location: &Key, options: GetOptions) -> Result<GetResult> {
        let (target, range, payload) = match options.head {
            // Who opens a file is told of it by the hub, each time.
            true => {
                self.0.targets.locked().remove(location);
                (self.0.target(location).await?, 0..0, stream::empty().boxed())
            }
            false => {
                let (target, range, response) = self.0.bytes(location, &options).await?;
                (target, range, response.into_body().bytes_stream().map_err(wrong).boxed())
            }
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(payload),
            meta: meta(location.clone(), target.size, target.tag),
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (hub, prefix) = (self.0.clone(), prefix.cloned());
        let listed = async move { hub.tree(prefix.as_ref(), true).await };
        let objects = |listed: ListResult| stream::iter(listed.objects.into_iter().map(Ok));
        stream::once(listed).map_ok(objects).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.0.tree(prefix, false).await
    }

    async fn put_opts(&self, _: &Key, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only("put"))
    }

    async fn put_multipart_opts(&self, _: &Key, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only("put"))
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Key>>) -> BoxStream<'static, Result<Key>> {
        locations.and_then(|_| async { Err(read_only("delete")) }).boxed()
    }

    async fn copy_opts(&self, _: &Key, _: &Key, _: CopyOptions) -> Result<()> {
        Err(read_only("copy"))
    }
}

impl fmt::Display for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hugging Face's hub")
    }
}

/// Without the token, and without addresses, which are signed.
impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("endpoint", &self.0.endpoint.as_str()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_repository_a_revision_and_a_path() {
        let place = |key: &str| {
            let place = Place::parse(key).unwrap();
            (place.repository, place.revision, place.path, place.root)
        };
        let words = |words: [&str; 4]| words.map(str::to_owned).into();
        assert_eq!(
            place("org/name@v1.0/data/a.parquet"),
            words(["org/name", "v1.0", "data/a.parquet", "org/name@v1.0"])
        );
        assert_eq!(place("org/name"), words(["org/name", "main", "", "org/name"]));
        assert_eq!(place("org/name@~parquet/x"), words(["org/name", "refs/convert/parquet", "x", "org/name@~parquet"]));
        assert_eq!(place("o/n@refs%2Fpr%2F1/x"), words(["o/n", "refs/pr/1", "x", "o/n@refs%2Fpr%2F1"]));
        for key in ["", "org", "org@main/name", "org/@main/x", "org/name@/x"] {
            assert!(Place::parse(key).is_err(), "{key}");
        }
        assert!(client("hf://models", 1).unwrap_err().message().contains("hf://datasets/org/name@revision/path"));
    }

    #[test]
    fn the_next_page_is_the_one_that_is_called_so() {
        let link = "<https://h/first>; rel=\"first\", <https://h/a?cursor=b%3D>; rel=\"next\"";
        assert_eq!(next_link(link), Some("https://h/a?cursor=b%3D"));
        assert_eq!(next_link("</a>; rel=next"), Some("/a"));
        assert_eq!(next_link("<https://h/first>; rel=\"first\""), None);
        assert_eq!(next_link("next"), None);
    }

    #[test]
    fn ranges_lie_inside_a_file() {
        assert_eq!(range_of(None, 9), 0..9);
        assert_eq!(range_of(Some(&GetRange::Bounded(3..99)), 9), 3..9);
        assert_eq!(range_of(Some(&GetRange::Offset(3)), 9), 3..9);
        assert_eq!(range_of(Some(&GetRange::Suffix(2)), 9), 7..9);
    }

    #[test]
    fn nothing_secret_is_shown() {
        let hub = Hub::new("http://127.0.0.1:1", Some("hf_secret".to_owned()), 1).unwrap();
        assert!(!format!("{hub:?}{hub}").contains("secret"));
        assert!(Hub::new("nowhere", None, 1).is_err());
    }
}
