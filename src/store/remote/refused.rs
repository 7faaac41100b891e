//! Refusals of servers: the error code and the request ID of a response, and a remedy.

use std::borrow::Cow;

use object_store::client::HttpResponse;
use serde_json::Value;

use super::clients;

/// Maximum length of a displayed code or ID, in bytes.
const LONGEST: usize = 128;
/// Headers with the error code.
const CODES: [&str; 1] = ["x-ms-error-code"];
/// Headers with the request ID, by which the operator of a store finds the request.
const REQUESTS: [&str; 3] = ["x-amz-request-id", "x-ms-request-id", "x-guploader-uploadid"];
/// Headers with the region of a bucket.
const REGIONS: [&str; 1] = ["x-amz-bucket-region"];

/// Parts of a refusal that may be displayed. Other parts of a response may contain a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Refused {
    code: Option<String>,
    request: Option<String>,
    region: Option<String>,
}

impl Refused {
    /// Reads the headers of a response, then the start of its body: XML (S3, Google, Azure) or JSON (Google).
    pub(in crate::store) fn of(response: &HttpResponse, body: &str) -> Self {
        let header = |names: &[&str]| {
            let mut values = names.iter().filter_map(|name| response.headers().get(*name)?.to_str().ok());
            values.find_map(shown)
        };
        let in_body = Self::in_text(body);
        Self {
            code: header(&CODES).or(in_body.code),
            request: header(&REQUESTS).or(in_body.request),
            region: header(&REGIONS).or(in_body.region),
        }
    }

    /// Finds the parts in a text that ends with the body of a response, such as a client error.
    pub(in crate::store) fn in_text(text: &str) -> Self {
        let element = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            shown(rest.split_once("</")?.0)
        };
        Self {
            code: element("Code").or_else(|| json_code(text)),
            request: element("RequestId"),
            region: element("Region"),
        }
    }

    /// Returns a body that contains only these parts, because clients copy bodies into their errors.
    pub(in crate::store) fn to_body(&self) -> String {
        let parts = [("Code", &self.code), ("RequestId", &self.request), ("Region", &self.region)];
        let elements =
            parts.into_iter().filter_map(|(name, value)| Some(format!("<{name}>{}</{name}>", value.as_ref()?)));
        elements.collect()
    }

    /// Returns true if the server sent a code.
    pub(in crate::store) fn has_code(&self) -> bool {
        self.code.is_some()
    }

    /// Appends the parts to a message: `the server answered 403 (AccessDenied, request 4F2A)`.
    pub(in crate::store) fn told(&self, message: impl Into<String>) -> String {
        let (message, request) = (message.into(), self.request.as_ref().map(|id| format!("request {id}")));
        let parts: Vec<&str> = [&self.code, &request].into_iter().flatten().map(String::as_str).collect();
        if parts.is_empty() { message } else { format!("{message} ({})", parts.join(", ")) }
    }

    /// Returns true if a bucket or a container is missing, as opposed to an object.
    pub(in crate::store) fn is_of_bucket(&self) -> bool {
        matches!(self.code.as_deref(), Some("NoSuchBucket" | "ContainerNotFound"))
    }

    /// Returns the remedy for the code.
    pub(in crate::store) fn help(&self) -> Option<Cow<'static, str>> {
        let text = match self.code.as_deref()? {
            "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" | "InvalidToken" | "invalid_grant" => {
                "the credentials have expired: renew them (for S3, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and \
                 `AWS_SESSION_TOKEN` belong together), and start again"
            }
            "SignatureDoesNotMatch" | "InvalidAccessKeyId" | "AuthenticationFailed" => {
                let keys = clients::any(|facts| facts.key);
                return Some(format!("the key in the environment is wrong or incomplete: check {keys}").into());
            }
            "AccessDenied"
            | "AuthorizationFailure"
            | "AuthorizationPermissionMismatch"
            | "PERMISSION_DENIED"
            | "forbidden" => {
                "the credentials in the environment lack the right to do this: to read objects, to list their bucket, or to \
                 write; public data are read without credentials with `AWS_SKIP_SIGNATURE=true`"
            }
            "NoSuchBucket" | "ContainerNotFound" => {
                "check the name of the bucket, and the endpoint in the environment, such as `AWS_ENDPOINT_URL`"
            }
            "PermanentRedirect"
            | "TemporaryRedirect"
            | "AuthorizationHeaderMalformed"
            | "IllegalLocationConstraintException" => {
                return Some(self.region_help());
            }
            "RequestTimeTooSkewed" | "RequestExpired" => {
                "the clock of this machine is wrong: set it, or synchronise it"
            }
            _ => return None,
        };
        Some(text.into())
    }

    /// Returns the remedy for a request to another region.
    pub(in crate::store) fn region_help(&self) -> Cow<'static, str> {
        if let Some(region) = &self.region {
            format!("the bucket is in another region: set `AWS_REGION={region}`").into()
        } else {
            "name the right region or endpoint in the environment: `AWS_REGION`, `AWS_ENDPOINT_URL` and the like".into()
        }
    }
}

/// Returns a trimmed code or ID. Returns `None` if it is empty, longer than [`LONGEST`], or contains anything except
/// letters, digits and `_-.:+/=`.
fn shown(text: &str) -> Option<String> {
    let text = text.trim();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:+/=".contains(&byte);
    (!text.is_empty() && text.len() <= LONGEST && text.bytes().all(is_plain)).then(|| text.to_owned())
}

/// Finds the code in JSON of Google: the status in `{"error": {"status": "PERMISSION_DENIED"}}`,
/// a reason in `errors`, or the text in `{"error": "invalid_grant"}`.
fn json_code(text: &str) -> Option<String> {
    let json: Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    let error = &json["error"];
    let code = [error, &error["status"], &error["errors"][0]["reason"]].into_iter().find_map(Value::as_str)?;
    shown(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(headers: &[(&'static str, &str)], body: &str) -> Refused {
        let mut response = HttpResponse::new(Vec::new().into());
        for (name, value) in headers {
            response.headers_mut().insert(*name, value.parse().unwrap());
        }
        Refused::of(&response, body)
    }

    #[test]
    fn the_code_and_the_request_id_of_each_store_are_shown() {
        let s3 = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>hidden</Message><RequestId>4F2A</RequestId>\
                  <HostId>hidden</HostId></Error>";
        let gcs = r#"{"error": {"code": 403, "message": "hidden", "errors": [{"reason": "forbidden"}]}}"#;
        for (headers, body, wanted) in [
            (&[][..], s3, " (AccessDenied, request 4F2A)"),
            (&[("x-amz-request-id", "HEAD1")], s3, " (AccessDenied, request HEAD1)"),
            (&[("x-amz-request-id", "HEAD1")], "", " (request HEAD1)"),
            (
                &[("x-ms-error-code", "AuthenticationFailed"), ("x-ms-request-id", "a-1")],
                "",
                " (AuthenticationFailed, request a-1)",
            ),
            (&[("x-guploader-uploadid", "ABg_x")], gcs, " (forbidden, request ABg_x)"),
            (&[], r#"{"error": "invalid_grant", "error_description": "hidden"}"#, " (invalid_grant)"),
            (&[], r#"{"error": {"status": "PERMISSION_DENIED"}}"#, " (PERMISSION_DENIED)"),
            (&[], "<html>hidden</html>", ""),
            (&[], "", ""),
        ] {
            let refused = answer(headers, body);
            assert_eq!(refused.told("403"), format!("403{wanted}"));
            // A client with built-in retries copies the body into its error.
            let error = format!("Server returned non-2xx status code: 403 Forbidden: {}", refused.to_body());
            assert_eq!(Refused::in_text(&error), refused);
        }
    }

    #[test]
    fn nothing_but_plain_codes_is_shown() {
        for code in ["a b", "a\u{1b}[2J", "a\nb", "\u{e9}", "", "<x>"] {
            assert_eq!(answer(&[], &format!("<Code>{code}</Code>")), Refused::default(), "{code:?}");
        }
        assert_eq!(answer(&[], &format!("<Code>{}</Code>", "a".repeat(LONGEST + 1))), Refused::default());
        assert_eq!(answer(&[], "<Code>a"), Refused::default());
    }

    #[test]
    fn each_code_has_its_remedy() {
        let help = |code: &str| answer(&[], &format!("<Code>{code}</Code>")).help().unwrap_or_default();
        for (code, word) in [
            ("ExpiredToken", "expired"),
            ("SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
            ("AccessDenied", "lack the right"),
            ("NoSuchBucket", "name of the bucket"),
            ("PermanentRedirect", "AWS_REGION"),
            ("RequestTimeTooSkewed", "clock"),
        ] {
            assert!(help(code).contains(word), "{code}: {}", help(code));
        }
        assert_eq!(help("SlowDown"), "");
        let moved = answer(&[("x-amz-bucket-region", "eu-west-1")], "<Code>PermanentRedirect</Code>");
        assert!(moved.help().unwrap().contains("AWS_REGION=eu-west-1"));
    }
}
