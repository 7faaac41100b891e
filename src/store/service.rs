//! What stands between a store's client and the network: it hears what servers say, which clients keep to themselves.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

/// What the last answer to a request said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// Whether anything was sent at all.
    pub(super) sent: bool,
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
}

/// A request of ours.
struct Asked {
    /// The URL as it was given, where it says more than the client knows: the query of a signed one.
    url: Option<Arc<str>>,
    told: Mutex<Told>,
}

tokio::task_local! {
    static ASKED: Arc<Asked>;
}

/// Runs a request, and says what the server told.
pub(super) async fn listening<F: Future>(url: Option<Arc<str>>, request: F) -> (F::Output, Told) {
    let asked = Arc::new(Asked { url, told: Mutex::default() });
    let output = ASKED.scope(asked.clone(), request).await;
    let told = *asked.told.lock().unwrap_or_else(PoisonError::into_inner);
    (output, told)
}

/// Connects clients through [`Service`].
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // A whole request may take its time; that it stands still is watched for elsewhere.
        let options = options.clone().with_timeout_disabled();
        Ok(HttpClient::new(Service(ReqwestConnector::default().connect(&options)?)))
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

impl Service {
    /// Sends a request of ours, and keeps what is told. Whoever asked decides what follows from it.
    async fn ask(&self, mut request: HttpRequest, asked: &Asked) -> Result<HttpResponse, HttpError> {
        if let Some(url) = &asked.url {
            *request.uri_mut() = url.parse().map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?;
        }
        let hear = |told| *asked.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
        hear(Told { sent: true, ..Told::default() });
        let response = self.0.execute(request).await?;
        hear(Told { sent: true, status: Some(response.status().as_u16()), retry_after: retry_after(&response) });
        Ok(response)
    }

    /// Sends a request which the client itself repeats. It does not know what pause the server wants, so that is made here.
    async fn pass(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        const LONGEST: Duration = Duration::from_secs(60);
        let response = self.0.execute(request).await?;
        if let (429 | 503, Some(pause)) = (response.status().as_u16(), retry_after(&response)) {
            tokio::time::sleep(pause.min(LONGEST)).await;
        }
        Ok(response)
    }
}

fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let text = response.headers().get("retry-after")?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(date(text)?.duration_since(SystemTime::now()).unwrap_or_default()),
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`: the one form of a date that servers may send.
fn date(text: &str) -> Option<SystemTime> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = text.split_once(", ")?.1.split([' ', ':']);
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next().filter(|month| month.len() == 3)?;
    let month = MONTHS.find(month).filter(|at| at % 3 == 0)? as i64 / 3;
    let mut number = || words.next()?.parse::<i64>().ok();
    let (year, hour, minute, second) = (number()?, number()?, number()?, number()?);
    // Years begin in March, so that a leap day is the last of its year: day 0 is the first of March of the year 0.
    let (year, month) = (year - i64::from(month < 2), (month + 10) % 12);
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = days + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = days.checked_mul(86_400)? + hour * 3600 + minute * 60 + second;
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("Sun, 06 anF 1994 08:49:37 GMT", None),
        ] {
            assert_eq!(seconds(text), want, "{text}");
        }
    }
}
