//! Datasets of Hugging Face's hub, read in place: `hf://datasets/org/name@revision/path`.
//!
//! A revision is resolved to a commit once per process. Workers receive the commit, so that all files come from it. The
//! download URL of a file is signed, is usually on another host, and expires. The URL is cached, and requested again
//! after a refusal. The token is sent only to the hub.
//!
//! Sources of the protocol: the hub's OpenAPI description, its page on rate limits, and the requests of
//! `huggingface_hub` 1.2.

mod commits;
mod place;
mod refusal;
mod tree;

use std::collections::HashMap;
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
use url::Url;

pub(in crate::store) use self::commits::variable;
use self::place::Place;
pub(in crate::store) use self::refusal::refusal;
use self::refusal::{Refusal, wrong};
use super::client::Redirects;
use super::hosts::NoHost;
use super::service::Connector;
use crate::error::{Error, Result as Checked};
use crate::store::options::StoreOptions;
use crate::sync::Locked;

type Result<T> = object_store::Result<T>;

/// Store of all datasets of a hub.
#[derive(Clone)]
pub(in crate::store) struct Hub(Arc<Inner>);

struct Inner {
    client: HttpClient,
    /// URL of the hub. Ends with a slash.
    endpoint: Url,
    token: Option<String>,
    /// Maximum number of attempts per request. The client for reads makes a single attempt, because its caller retries.
    attempts: u32,
    /// Lock held during the resolution of a commit.
    asking: tokio::sync::Mutex<()>,
    /// Last known download locations of files.
    targets: Mutex<HashMap<Key, Target>>,
}

/// Download location of a file.
#[derive(Clone)]
struct Target {
    url: Url,
    size: u64,
    tag: Option<String>,
    /// ETag of responses with bytes, unset before the first response. Differs from `tag` if the bytes are on another
    /// host.
    bytes_tag: Option<String>,
}

impl Target {
    /// Records the ETag of a response with bytes. Returns false if earlier bytes belong to another version.
    fn is_of(&mut self, tag: Option<&str>) -> bool {
        let Some(tag) = tag.map(|tag| tag.strip_prefix("W/").unwrap_or(tag)) else { return true };
        self.bytes_tag.get_or_insert_with(|| tag.to_owned()) == tag
    }
}

/// Maximum number of redirects between addresses of the hub.
const REDIRECTS: usize = 5;

/// Creates the client for `hf://datasets`, with at most `attempts` attempts per request.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if `root` is not `hf://datasets`, or if the endpoint is not a URL.
pub(in crate::store) fn client(root: &str, retry: object_store::RetryConfig) -> Checked<Arc<dyn ObjectStore>> {
    if root != "hf://datasets" {
        return Err(Error::config(Refusal::NoDataset.to_string()));
    }
    let endpoint = std::env::var("HF_ENDPOINT").ok().filter(|text| !text.is_empty());
    let hub = Hub::new(endpoint.as_deref().unwrap_or("https://huggingface.co"), token(), retry.max_retries as u32 + 1)?;
    Ok(Arc::new(hub))
}

/// Reads the token from the environment, or from the file that `hf auth login` has written.
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

/// Returns the pause after attempt `made`, which failed.
fn pause(made: u32) -> Duration {
    Duration::from_millis(100 << made.min(6))
}

impl Inner {
    /// Returns the URL of the hub with these path segments.
    fn url<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    /// Sends a request to the hub or another server, with retries. All attempts together take at most the timeout. The
    /// token is sent only to the hub.
    async fn ask(&self, method: &str, url: &Url, range: Option<&Range<u64>>) -> Result<HttpResponse> {
        let most = StoreOptions::current().timeout;
        let asked = tokio::time::timeout(most, self.ask_on(method, url, range)).await;
        asked.unwrap_or_else(|_| Err(wrong(Refusal::NoAnswer(most.as_secs_f64()))))
    }

    async fn ask_on(&self, method: &str, url: &Url, range: Option<&Range<u64>>) -> Result<HttpResponse> {
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
                // The cause is omitted, because it may quote the token.
                let header = format!("Bearer {token}").parse().map_err(|_| wrong(Refusal::BadToken))?;
                headers.insert("authorization", header);
            }
            let answer = self.client.execute(request).await.map_err(wrong);
            let is_busy = |response: &HttpResponse| matches!(response.status().as_u16(), 408 | 429 | 500..);
            let is_final = match &answer {
                Ok(response) => !is_busy(response),
                Err(error) => NoHost::in_error(error).is_some(),
            };
            if made >= self.attempts || is_final {
                return answer;
            }
            // The back-off between attempts.
            tokio::time::sleep(pause(made)).await;
            made += 1;
        }
    }

    /// Parses a response of the hub as JSON.
    async fn json<T: serde::de::DeserializeOwned>(&self, place: &Place, response: HttpResponse) -> Result<T> {
        if !response.status().is_success() {
            return Err(self.refused(place, &response));
        }
        let bytes = response.into_body().bytes().await.map_err(wrong)?;
        serde_json::from_slice(&bytes).map_err(|_| wrong(Refusal::NotUnderstood("an invalid answer")))
    }

    /// Finds the download URL, the size and the ETag of a file.
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
            let target = Target { url: next.unwrap_or(url), size, tag, bytes_tag: None };
            self.targets.locked().insert(key.clone(), target.clone());
            return Ok(target);
        }
        Err(wrong(Refusal::NoAddress))
    }

    /// Requests bytes of a file from the cached URL, or from a new URL if the cached URL has expired.
    async fn bytes(&self, key: &Key, options: &GetOptions) -> Result<(Target, Range<u64>, HttpResponse)> {
        for is_last in [false, true] {
            let target = self.target(key).await?;
            let range = range_of(options.range.as_ref(), target.size);
            let response = self.ask("GET", &target.url, Some(&range)).await?;
            match response.status().as_u16() {
                206 if answers(&response, &range, target.size) => {
                    let tag = response.headers().get("etag").and_then(|tag| tag.to_str().ok());
                    let mut targets = self.targets.locked();
                    let known = targets.get_mut(key).filter(|known| known.url == target.url);
                    if known.is_some_and(|known| !known.is_of(tag)) {
                        return Err(wrong(Refusal::Changed));
                    }
                    return Ok((target, range, response));
                }
                206 => return Err(wrong(Refusal::WrongRange)),
                200 if range == (0..target.size) => return Ok((target, range, response)),
                200 => return Err(E::NotSupported { source: Box::new(Refusal::NoRanges) }),
                // Signed URLs expire.
                401 | 403 | 404 | 410 if !is_last && target.url.origin() != self.endpoint.origin() => {
                    self.targets.locked().remove(key);
                }
                _ => return Err(self.refused(&Place::parse(key.as_ref())?, &response)),
            }
        }
        Err(wrong(Refusal::NoAddress))
    }
}

fn meta(location: Key, size: u64, e_tag: Option<String>) -> ObjectMeta {
    ObjectMeta { location, last_modified: SystemTime::UNIX_EPOCH.into(), size, e_tag, version: None }
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

/// Returns true if `Content-Range` matches this range of `size` bytes.
fn answers(response: &HttpResponse, range: &Range<u64>, size: u64) -> bool {
    let said = response.headers().get("content-range").and_then(|said| said.to_str().ok());
    said == Some(&*format!("bytes {}-{}/{size}", range.start, range.end - 1))
}

fn read_only(operation: &str) -> E {
    E::NotImplemented { operation: operation.to_owned(), implementer: "Hugging Face's hub".to_owned() }
}

#[async_trait]
impl ObjectStore for Hub {
    async fn get_opts(&self, location: &Key, options: GetOptions) -> Result<GetResult> {
        let (target, range, payload) = match options.head {
            // Each opening of a file requests its location from the hub again.
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

display_as!(Hub, |self, f| f.write_str("Hugging Face's hub"));

// Omits the token and the URLs of files, which are signed.
debug_as!(Hub, |self, f| f.debug_struct("Hub").field("endpoint", &self.0.endpoint.as_str()).finish_non_exhaustive());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_nothing_but_datasets() {
        assert!(
            client("hf://models", Default::default())
                .unwrap_err()
                .message()
                .contains("hf://datasets/org/name@revision/path")
        );
    }

    #[test]
    fn all_bytes_of_a_file_are_of_one_version() {
        let url = Url::parse("https://host/file").unwrap();
        let mut target = Target { url, size: 9, tag: Some("\"of the hub\"".into()), bytes_tag: None };
        assert!(
            target.is_of(None) && target.is_of(Some("\"a\"")) && target.is_of(Some("W/\"a\"")) && target.is_of(None)
        );
        assert!(!target.is_of(Some("\"b\"")));
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

    #[test]
    fn pauses_double_up_to_six_attempts() {
        let pauses = [1, 2, 3, 4, 5, 6, 7, 100].map(|made| pause(made).as_millis());
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 6400, 6400, 6400]);
    }
}
