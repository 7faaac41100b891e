//! HTTP service between a store's client and the network. Records details of responses that clients do not expose.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use tokio::time::timeout;
use xxhash_rust::xxh3::xxh3_128;

use super::client::{Redirects, client};
use super::hosts::NoHost;
use super::refused::Refused;
use crate::store::DESCRIPTION;
use crate::store::options::StoreOptions;
use crate::sync::Locked;

/// Details of the last response to a request.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Told {
    /// Whether a request was sent at all.
    pub(in crate::store) sent: bool,
    pub(in crate::store) status: Option<u16>,
    pub(in crate::store) retry_after: Option<Duration>,
    /// Reason for a refusal.
    pub(in crate::store) refused: Refused,
    /// Time of the response, by the server's clock.
    pub(in crate::store) date: Option<SystemTime>,
    /// Hash of the requested URL: the server, the object, and all other parts that select the bytes.
    pub(in crate::store) place: u128,
}

/// Request by this crate, as opposed to requests that the client retries.
struct Asked {
    /// URL as given, if the client lacks a part of it, such as the query of a signed URL.
    url: Option<Arc<str>>,
    told: Mutex<Told>,
}

tokio::task_local! {
    static ASKED: Arc<Asked>;
    /// Remaining bytes of a listing.
    static LISTED: AtomicU64;
}

/// Maximum size of a listing in bytes, over all of its pages. Enough for a million objects or more.
const LISTING: u64 = 1 << 30;
/// Minimum number of bytes counted for a page, so that a sequence of empty pages also ends.
const PAGE: u64 = 256 << 10;

/// Runs the requests of a listing. Returns an error if the server sends pages without an end.
pub(in crate::store) async fn listing<F: Future>(requests: F) -> F::Output {
    LISTED.scope(AtomicU64::new(LISTING), requests).await
}

/// Runs a request. Also returns the details of the last response.
pub(in crate::store) async fn listening<F: Future>(url: Option<Arc<str>>, request: F) -> (F::Output, Told) {
    let asked = Arc::new(Asked { url, told: Mutex::default() });
    let output = ASKED.scope(asked.clone(), request).await;
    let told = asked.told.locked().clone();
    (output, told)
}

/// Connector that routes clients through [`Service`].
#[derive(Debug)]
pub(in crate::store) struct Connector(pub(in crate::store) Redirects);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Service(client(options, self.0)?)))
    }
}

#[derive(Debug)]
struct Service(HttpClient);

impl HttpService for Service {
    fn call<'a, 'f>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            match ASKED.try_with(Arc::clone) {
                Ok(asked) => self.ask(request, &asked).await,
                Err(_) => self.pass(request).await,
            }
        })
    }
}

/// Maximum number of bytes read from the body of a refusal.
const REFUSAL: u64 = 64 << 10;

impl Service {
    /// Sends a request by this crate, and records the details of the response. The caller interprets them.
    async fn ask(&self, mut request: HttpRequest, asked: &Asked) -> Result<HttpResponse, HttpError> {
        if let Some(url) = &asked.url {
            *request.uri_mut() = url.parse().map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?;
        }
        let place = place_of(&request, asked);
        let hear = |told| *asked.told.locked() = told;
        hear(Told { sent: true, place, ..Told::default() });
        let response = self.0.execute(request).await.map_err(if_no_host)?;
        let status = response.status();
        let date = response.headers().get("date").and_then(|text| date(text.to_str().ok()?));
        let retry_after = retry_after(&response);
        let told = Told { sent: true, place, date, status: Some(status.as_u16()), retry_after, ..Told::default() };
        hear(told.clone());
        match status.is_success() {
            true if has_impossible_range(&response) => Err(HttpError::new(HttpErrorKind::Decode, Impossible)),
            true => Ok(response),
            false => {
                let (response, refused) = refusal(response).await;
                hear(Told { refused, ..told });
                Ok(response)
            }
        }
    }

    /// Sends a request that the client retries, and reads the whole response. Takes at most the time allowed for a
    /// request.
    async fn pass(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let StoreOptions { timeout: most, stall, .. } = StoreOptions::current();
        match timeout(most, self.whole(request, stall)).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpError::new(HttpErrorKind::Timeout, Slow(most))),
        }
    }

    async fn whole(&self, request: HttpRequest, stall: Duration) -> Result<HttpResponse, HttpError> {
        // The client ignores the pause that the server requests, so the pause is made here.
        const LONGEST_PAUSE: Duration = Duration::from_secs(60);
        let has_body = request.method().as_str() != "HEAD";
        // Sending a body may take long, so only requests without a body have a stall limit.
        let sends = !matches!(request.method().as_str(), "GET" | "HEAD");
        let most = if sends { Duration::MAX } else { stall };
        let stands_still = |_| HttpError::new(HttpErrorKind::Timeout, Slow(stall));
        let response = timeout(most, self.0.execute(request)).await.map_err(stands_still)?.map_err(if_no_host)?;
        if let (429 | 503, Some(pause)) = (response.status().as_u16(), retry_after(&response)) {
            // The pause that the server requested.
            tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
        }
        if !response.status().is_success() {
            return Ok(refusal(response).await.0);
        }
        let (parts, body) = response.into_parts();
        let length = parts.headers.get("content-length").and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if has_body && length.is_some_and(|length| length > DESCRIPTION) {
            return Err(HttpError::new(HttpErrorKind::Decode, TooLong(DESCRIPTION)));
        }
        let bytes = gathered(body, DESCRIPTION, stall).await?;
        let page = PAGE.max(bytes.len() as u64);
        let takes = |left: &AtomicU64| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(page)).is_ok()
        };
        if !LISTED.try_with(takes).unwrap_or(true) {
            return Err(HttpError::new(HttpErrorKind::Decode, Endless));
        }
        Ok(HttpResponse::from_parts(parts, bytes.into()))
    }
}

/// Converts the error of a failed lookup to a kind that no client retries.
fn if_no_host(error: HttpError) -> HttpError {
    if let Some(none) = NoHost::in_error(&error) { HttpError::new(HttpErrorKind::Unknown, none.clone()) } else { error }
}

/// Reads a whole body of at most `most` bytes, with a limit of `stall` between pieces.
async fn gathered(body: HttpResponseBody, most: u64, stall: Duration) -> Result<Vec<u8>, HttpError> {
    let (mut bytes, mut body) = (Vec::new(), body.bytes_stream());
    let stands_still = |_| HttpError::new(HttpErrorKind::Timeout, Slow(stall));
    while let Some(piece) = timeout(stall, body.next()).await.map_err(stands_still)? {
        let piece = piece?;
        if bytes.len() as u64 + piece.len() as u64 > most {
            return Err(HttpError::new(HttpErrorKind::Decode, TooLong(most)));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Returns a refused response reduced to its reason, and the reason. Reads only the start of the body.
async fn refusal(response: HttpResponse) -> (HttpResponse, Refused) {
    let (parts, body) = response.into_parts();
    let (mut bytes, mut body) = (Vec::new(), body.bytes_stream());
    while let Some(Ok(piece)) = body.next().await {
        bytes.extend_from_slice(&piece[..piece.len().min(REFUSAL as usize - bytes.len())]);
        if bytes.len() as u64 == REFUSAL {
            break;
        }
    }
    let headers = HttpResponse::from_parts(parts, Vec::new().into());
    let refused = Refused::of(&headers, &String::from_utf8_lossy(&bytes));
    let (parts, _) = headers.into_parts();
    (HttpResponse::from_parts(parts, refused.to_body().into()), refused)
}

/// Returns a hash of the requested URL. Omits the query if the client built the URL, because such a query is only a
/// signature.
fn place_of(request: &HttpRequest, asked: &Asked) -> u128 {
    let url = request.uri().to_string();
    let end = if asked.url.is_some() { url.len() } else { url.find('?').unwrap_or(url.len()) };
    xxh3_128(&url.as_bytes()[..end])
}

/// Returns true if `Content-Range` contains a number beyond `i64`. No object is so large, and clients would overflow.
fn has_impossible_range(response: &HttpResponse) -> bool {
    let range = response.headers().get("content-range").and_then(|range| range.to_str().ok());
    let mut numbers =
        range.unwrap_or_default().split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    numbers.any(|number| number.parse::<i64>().is_err())
}

#[derive(Debug, thiserror::Error)]
#[error("the server announces bytes at positions that no object can have")]
struct Impossible;

#[derive(Debug, thiserror::Error)]
#[error("no complete answer within {0:?}, the time limit")]
struct Slow(Duration);

#[derive(Debug, thiserror::Error)]
#[error("the answer is longer than the limit of {} MiB", .0 >> 20)]
struct TooLong(u64);

#[derive(Debug, thiserror::Error)]
#[error("the listing is longer than the limit of {} MiB or {} pages", LISTING >> 20, LISTING / PAGE)]
struct Endless;

/// Returns the pause that a server requests by `Retry-After`. For status 429, the pause may also be the time until the
/// window ends: `RateLimit: "resolvers";r=0;t=55`.
fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    let window = || {
        let limit = header("ratelimit").filter(|_| response.status().as_u16() == 429)?;
        limit.split(';').find_map(|part| part.trim().strip_prefix("t="))
    };
    let text = header("retry-after").or_else(window)?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(date(text)?.duration_since(SystemTime::now()).unwrap_or_default()),
    }
}

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT`, the only format of a date that servers may send.
fn date(text: &str) -> Option<SystemTime> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = text.split_once(", ")?.1.split([' ', ':']);
    // At most four digits, like a year, so that the computation does not overflow.
    let number = |text: &str| text.parse::<u32>().ok().filter(|&n| n < 10_000).map(i64::from);
    let day = number(words.next()?)?;
    let month = words.next().filter(|month| month.len() == 3)?;
    let month = MONTHS.find(month).filter(|at| at % 3 == 0)? as i64 / 3;
    let mut next = || number(words.next()?);
    let (year, hour, minute, second) = (next()?, next()?, next()?, next()?);
    // Years begin in March, so that a leap day is the last day of its year. Day 0 is March 1 of year 0.
    let (year, month) = (year - i64::from(month < 2), (month + 10) % 12);
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = days + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_taken_whole_has_a_limit() {
        let gathered = |bytes: usize, most| {
            let body = HttpResponseBody::from(vec![1; bytes]);
            crate::store::remote::runtime::wait(async move { gathered(body, most, Duration::from_secs(9)).await })
                .unwrap()
        };
        assert_eq!(gathered(1 << 20, 1 << 20).unwrap().len(), 1 << 20);
        let error = gathered((1 << 20) + 1, 1 << 20).unwrap_err();
        assert!(error.to_string().ends_with("the answer is longer than the limit of 1 MiB"));
    }

    use object_store::client::HttpRequestBody;

    /// Server that always has another page.
    #[derive(Debug)]
    struct Pages(usize);

    impl HttpService for Pages {
        fn call<'a, 'f>(
            &'a self,
            _request: HttpRequest,
        ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
        where
            'a: 'f,
            Self: 'f,
        {
            Box::pin(async { Ok(HttpResponse::new(vec![b'x'; self.0].into())) })
        }
    }

    /// Server that accepts an upload after a while, and never responds to other requests.
    #[derive(Debug)]
    struct Reads;

    impl HttpService for Reads {
        fn call<'a, 'f>(
            &'a self,
            request: HttpRequest,
        ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
        where
            'a: 'f,
            Self: 'f,
        {
            Box::pin(async move {
                match request.method().as_str() {
                    // The duration of the upload.
                    "PUT" => tokio::time::sleep(Duration::from_millis(30)).await,
                    _ => std::future::pending().await,
                }
                Ok(HttpResponse::new(Vec::new().into()))
            })
        }
    }

    #[test]
    fn an_answer_may_stand_still_for_less_time_than_a_body_may_be_sent() {
        let answered = |method: &'static str| {
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            *request.method_mut() = method.parse().unwrap();
            let service = Service(HttpClient::new(Reads));
            let whole = async move { service.whole(request, Duration::from_millis(1)).await.map(drop) };
            crate::store::remote::runtime::wait(whole).unwrap().map_err(|error| error.kind())
        };
        assert_eq!(answered("PUT").ok(), Some(()));
        for method in ["GET", "HEAD"] {
            assert!(matches!(answered(method), Err(HttpErrorKind::Timeout)), "{method}");
        }
    }

    #[test]
    fn a_listing_without_an_end_is_an_error() {
        for (bytes, pages) in [(0, 4096), (1 << 20, 1024)] {
            let service = Service(HttpClient::new(Pages(bytes)));
            let count = async move {
                let mut count = 0;
                while service.call(HttpRequest::new(HttpRequestBody::empty())).await.is_ok() {
                    count += 1;
                }
                count
            };
            assert_eq!(crate::store::remote::runtime::wait(listing(count)).unwrap(), pages);
        }
    }

    #[test]
    fn ranges_of_places_that_no_object_has_are_refused() {
        let is_refused = |range: &str| {
            let mut response = HttpResponse::new(Vec::new().into());
            response.headers_mut().insert("content-range", range.parse().unwrap());
            has_impossible_range(&response)
        };
        let refused =
            ["bytes 0-18446744073709551615/5", "bytes 9223372036854775808-9/9", "bytes 0-1/1e99999999999999999999"];
        assert!(refused.map(is_refused).iter().all(|&is| is));
        assert!(
            !["bytes 0-9223372036854775807/*", "bytes */5", "bytes -1-5/7", "", "items"]
                .map(is_refused)
                .iter()
                .any(|&is| is)
        );
    }

    #[test]
    fn dates_are_seconds_since_1970() {
        let seconds = |text| date(text).map(|date| date.duration_since(UNIX_EPOCH).unwrap().as_secs());
        for (text, want) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Thu, 29 Feb 2024 12:00:00 GMT", Some(1_709_208_000)),
            ("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200)),
            ("Wed, 31 Dec 1969 23:59:59 GMT", None),
            ("soon", None),
            ("Sun, 06 Nov 9223372036854775807 08:49:37 GMT", None),
            ("Sun, 9223372036854775807 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 9223372036854775807:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:-1:37 GMT", None),
            ("Sun, 06 Nov 9999 23:59:59 GMT", Some(253_397_548_799)),
            ("Sun, 06 anF 1994 08:49:37 GMT", None),
        ] {
            assert_eq!(seconds(text), want, "{text}");
        }
    }
}
