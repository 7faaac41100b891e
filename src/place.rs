//! Locations of files: a path of this machine, or the URL of an object in a store.
//!
//! Users give a [`Path`] for either. It becomes a [`Location`] where it comes in.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The path of standard input, also of systems that have no such file.
pub(crate) const STDIN: &str = "/dev/stdin";

/// The path that a name of a file of data stands for: that of standard input for `-`.
pub(crate) fn named(name: &Path) -> &Path {
    if name == Path::new("-") { Path::new(STDIN) } else { name }
}

/// Location of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Location {
    /// A path of this machine.
    Local(PathBuf),
    /// The URL of an object in a store, or of a folder of some.
    Object(PathBuf),
}

impl<P: Into<PathBuf>> From<P> for Location {
    /// Parses a path or a URL. A `file://` URL is the path that it stands for.
    fn from(path: P) -> Self {
        let path = path.into();
        match (scheme(&path), path.to_str()) {
            (Some(scheme), Some(text)) if scheme.eq_ignore_ascii_case("file") => {
                let rest = &text[scheme.len() + "://".len()..];
                Self::Local(unescaped(rest.strip_prefix("localhost").unwrap_or(rest)))
            }
            (Some(_), _) => Self::Object(path),
            (None, _) => Self::Local(path),
        }
    }
}

impl AsRef<Path> for Location {
    fn as_ref(&self) -> &Path {
        let (Self::Local(path) | Self::Object(path)) = self;
        path
    }
}

impl Location {
    /// The path or URL, as users have it.
    pub(crate) fn into_path(self) -> PathBuf {
        let (Self::Local(path) | Self::Object(path)) = self;
        path
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// The location of another file on this machine or in this store, by its path.
    pub(crate) fn beside(&self, path: impl FnOnce(&Path) -> PathBuf) -> Self {
        match self {
            Self::Local(this) => Self::Local(path(this)),
            Self::Object(this) => Self::Object(path(this)),
        }
    }

    /// The file of this name in the folder.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> Self {
        self.beside(|folder| folder.join(name))
    }

    /// Whether it exists, as far as that is known unasked: stores are asked when an object is opened.
    #[cfg(feature = "spec")]
    pub(crate) fn may_exist(&self) -> bool {
        self.is_object() || self.as_ref() == Path::new(STDIN) || self.as_ref().exists()
    }
}

/// The scheme of a URL: `s3` of `s3://bucket/key`. A letter by itself is a drive.
pub(crate) fn scheme(path: &Path) -> Option<&str> {
    let (scheme, _) = path.to_str()?.split_once("://")?;
    is_scheme(scheme).then_some(scheme)
}

fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Whether a scheme is that of a web server, whose URLs have queries.
pub(crate) fn is_web(scheme: &str) -> bool {
    ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web))
}

/// Whether a URL may name a folder: one of a web server ends with a slash, the last part of others has no ending, and a dataset of the hub
/// (`hf://datasets/org/name`) is one whatever its name.
#[cfg(any(test, feature = "cli", feature = "store"))]
pub(crate) fn may_be_folder(path: &Path) -> bool {
    let Some(scheme) = scheme(path).filter(|scheme| !scheme.eq_ignore_ascii_case("file")) else { return true };
    let text = path.to_string_lossy();
    let name = text.rsplit('/').next().unwrap_or_default();
    name.is_empty() || is_dataset(path) || !is_web(scheme) && !name.contains('.')
}

/// Whether a URL names a whole dataset of the hub.
#[cfg(any(test, feature = "cli", feature = "store"))]
pub(crate) fn is_dataset(path: &Path) -> bool {
    let parts = |text: &str| text.split('/').count();
    let is_hub = scheme(path).is_some_and(|scheme| scheme.eq_ignore_ascii_case("hf"));
    is_hub && parts(&path.to_string_lossy()) <= parts("hf://datasets/org/name")
}

/// The part of a path or URL that may be shown: a URL without user, password and query, where keys and signatures stand.
///
/// It errs on the safe side. Where the host is not plainly one, nothing in front of the last `@` is shown, and no host if there is
/// no `@`: a password may hold any letter, slashes too.
pub(crate) fn shown(path: &Path) -> Cow<'_, Path> {
    let text = path.to_string_lossy();
    match Url::of(&text).and_then(|url| url.shown()) {
        Some(text) => Cow::Owned(PathBuf::from(text)),
        None => Cow::Borrowed(path),
    }
}

/// Whether a URL names a user, a password, or a host that is none.
#[cfg(feature = "store")]
pub(crate) fn has_user(url: &str) -> bool {
    Url::of(url).is_some_and(|url| !url.is_plain())
}

/// The folder of a file, as it may be shown: signatures may have slashes.
pub(crate) fn folder_of(file: &Path) -> PathBuf {
    shown(file).parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// The last part of a path or URL, for names and messages.
pub(crate) fn file_name(path: &Path) -> Cow<'_, str> {
    let name = |path: &'_ Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match shown(path) {
        Cow::Borrowed(path) => path.file_name().unwrap_or_default().to_string_lossy(),
        Cow::Owned(path) => Cow::Owned(name(&path)),
    }
}

/// The parts of a text that is a URL, or would be one but for what stands in front of it.
struct Url<'a> {
    /// Everything up to the host.
    head: &'a str,
    scheme: &'a str,
    /// The host, and the user in front of it.
    authority: &'a str,
    /// Authority and path, without the query.
    rest: &'a str,
    has_query: bool,
}

impl<'a> Url<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let colon = text.find(":/")?;
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let scheme = text[..colon].rsplit(|c| !is_part(c)).next().filter(|scheme| is_scheme(scheme))?;
        let behind = text[colon + 1..].trim_start_matches('/');
        let (head, slashes) = (&text[..text.len() - behind.len()], text.len() - behind.len() - colon - 1);
        // Of a path that was taken apart and put together again, one slash is left.
        if scheme.eq_ignore_ascii_case("file") || slashes < 2 && !is_known(scheme) {
            return None;
        }
        // In the names of objects a question mark is a letter like others, or stands for one.
        let query = behind.find(['?', '#']).filter(|&at| is_web(scheme) || behind[at..].contains('='));
        let rest = &behind[..query.unwrap_or(behind.len())];
        let authority = rest.split(['/', '\\']).next().unwrap_or_default();
        Some(Self { head, scheme, authority, rest, has_query: query.is_some() })
    }

    /// Whether the host stands by itself: a name, perhaps with a port. Azure has containers in front of it.
    fn is_plain(&self) -> bool {
        let container = self.authority.split_once('@').filter(|_| has_containers(self.scheme));
        is_host(self.authority) || container.is_some_and(|(container, host)| is_name(container) && is_host(host))
    }

    /// The text as it may be shown, where that is not all of it.
    fn shown(&self) -> Option<String> {
        let Self { head, rest, .. } = self;
        if self.is_plain() {
            return self.has_query.then(|| format!("{head}{rest}"));
        }
        let at = rest.to_ascii_lowercase().rfind("%40").map(|at| at + 3).max(rest.rfind('@').map(|at| at + 1));
        let tail = at.map(|at| &rest[at..]).filter(|tail| is_host(tail.split('/').next().unwrap_or_default()));
        Some(format!("{head}{}", tail.unwrap_or("***")))
    }
}

/// The schemes of stores that [`store`](crate::store) reads, and those that people write URLs with passwords of.
fn is_known(scheme: &str) -> bool {
    let known = ["s3", "s3a", "gs", "gcs", "az", "adl", "azure", "ftp", "ftps", "sftp", "hdfs"];
    is_web(scheme) || has_containers(scheme) || known.iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// `abfss://container@account.dfs.core.windows.net/path`.
fn has_containers(scheme: &str) -> bool {
    ["abfs", "abfss", "wasb", "wasbs"].iter().any(|azure| scheme.eq_ignore_ascii_case(azure))
}

/// A host without a user, and perhaps with a port.
fn is_host(text: &str) -> bool {
    let is_port = |port: &str| (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(address) = text.strip_prefix('[') {
        let (address, port) = address.split_once(']').unwrap_or((text, ""));
        let is_address = address.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte));
        return is_address && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    match text.split_once(':') {
        Some((name, port)) => is_name(name) && is_port(port),
        None => is_name(text),
    }
}

/// A name of a host, a bucket or a container, or a pattern of those.
fn is_name(text: &str) -> bool {
    !text.contains(['@', ':', '%', '\\'])
}

/// The bytes that `%41` and the like stand for.
pub(crate) fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = (first == b'%').then(|| behind.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

/// Those whose names end so; if there are none, the shards, as TFDS and Beam call them: `train.array_record-00000-of-00002`.
pub(crate) fn of_endings<T>(all: Vec<T>, endings: &[&str], name: impl Fn(&T) -> &str) -> Vec<T> {
    let ends = |name: &str| !name.starts_with('.') && endings.iter().any(|ending| name.ends_with(ending));
    let (found, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| ends(name(one)));
    match found.is_empty() {
        true => others.into_iter().filter(|one| unsharded(name(one)).is_some_and(ends)).collect(),
        false => found,
    }
}

/// Whether files and folders of this name are no data in a folder that is walked: `_SUCCESS`, `_temporary` and `.staging` of Spark and Hive.
pub(crate) fn is_skipped(name: &str) -> bool {
    name.starts_with(['_', '.'])
}

/// The name without `-00000-of-00002` at its end.
pub(crate) fn unsharded(name: &str) -> Option<&str> {
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, count) = name.rsplit_once("-of-")?;
    let (rest, shard) = rest.rsplit_once('-')?;
    (is_number(count) && is_number(shard)).then_some(rest)
}

/// Says that nothing ends so; formats of many endings are not told one by one.
pub(crate) fn none_in(what: &str, endings: &[&str]) -> String {
    match endings.len() {
        0..=8 => format!("{what} ends with {}", endings.join(" or ")),
        _ => format!("{what} has the ending of a known format"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_are_told_from_paths() {
        let remote = |text: &str| Location::from(text).is_object();
        assert!(remote("s3://b/k") && remote("https://h/p") && remote("abfss://c@a.dfs.core.windows.net/p"));
        assert!(!remote("a/b") && !remote("c://x") && !remote("file:///a") && !remote("1s://b") && !remote("a b://c"));
        assert_eq!(Location::from("file:///a/b%20c%zz"), Location::Local("/a/b c%zz".into()));
        assert_eq!(Location::from("FILE://localhost/a"), Location::Local("/a".into()));
        assert_eq!(Location::from("a%20b"), Location::Local("a%20b".into()));
    }

    #[test]
    fn folders_are_told_from_objects_by_their_names() {
        let may_be = |text: &str| may_be_folder(Path::new(text));
        assert!(may_be("a.jsonl") && may_be("s3://b/k") && may_be("s3://b/k.v2/") && may_be("http://h/a/"));
        assert!(may_be("hf://datasets/org/name-1.0@v2.1") && !may_be("hf://datasets/org/name/a.jsonl"));
        assert!(!may_be("s3://b/a.jsonl") && !may_be("http://h/a") && !may_be("HTTPS://h/a.jsonl?b"));
    }

    #[test]
    fn signatures_and_passwords_are_not_shown() {
        for (given, want) in [
            ("https://user:secret@host/a?X-Amz-Signature=secret", "https://host/a"),
            ("http://host/a/b@c#secret", "http://host/a/b@c"),
            ("https://user:secret@host", "https://host"),
            ("az://container/key?sv=1&sig=secret", "az://container/key"),
            ("s3://bucket/a-??.jsonl", "s3://bucket/a-??.jsonl"),
            ("abfss://container@account/key", "abfss://container@account/key"),
            ("data/a?b=c", "data/a?b=c"),
            ("http://localhost:8080/@a/b", "http://localhost:8080/@a/b"),
            ("http://[::1]:80/a?b", "http://[::1]:80/a"),
            ("HTTPS://user:secret@host/a", "HTTPS://host/a"),
            ("https://user:se/cret@host/a", "https://host/a"),
            ("https://user:secret%2Fsecret/a", "https://***"),
            ("https:/user:secret@host/a", "https:/host/a"),
            ("s3://KEY:se/cret@bucket/a", "s3://bucket/a"),
            ("gs://token@bucket/a", "gs://bucket/a"),
            ("abfss://container:secret@account/key", "abfss://account/key"),
            ("{https://user:secret@host/a,b}", "{https://host/a,b}"),
        ] {
            assert_eq!(shown(Path::new(given)), Path::new(want));
        }
    }

    /// Every scheme, in any case, with a user and a password of any letters, before a path and a query.
    fn spelling() -> impl Strategy<Value = (String, String)> {
        const SCHEMES: &[&str] =
            &["http", "https", "s3", "s3a", "gs", "az", "abfs", "abfss", "ftp", "hdfs", "some+thing"];
        let cased = (proptest::sample::select(SCHEMES), any::<u64>()).prop_map(|(scheme, cases)| {
            let upper = |(i, c): (usize, char)| if cases >> i & 1 == 1 { c.to_ascii_uppercase() } else { c };
            scheme.chars().enumerate().map(upper).collect::<String>()
        });
        let password = "([a-z+=!$&*,;~-]|[/@:\\\\]|%2[fF]|%3[aA]|%40){0,6}SECRET([a-z+=!$]|[/@:\\\\]|%2[fF]|%40){0,6}";
        let host = "[a-z]{1,8}(\\.[a-z]{2,3})?(:[0-9]{1,5})?";
        let path = "(/[a-z0-9._-]{1,8}){0,3}";
        const KEYS: &[&str] =
            &["X-Amz-Signature", "X-Amz-Security-Token", "X-Goog-Signature", "sig", "Signature", "token", "se"];
        let query = (proptest::sample::select(KEYS), "(&[a-z]{1,3}=SECRET){0,2}");
        let query = query.prop_map(|(key, more)| format!("?{key}=SECRET{more}"));
        let user = ("[a-zA-Z]{1,5}", password).prop_map(|(user, password)| format!("{user}:{password}@"));
        (cased, proptest::option::of(user), host, path, proptest::option::of(query)).prop_map(
            |(scheme, user, host, path, query)| {
                let plain = format!("{scheme}://{host}{path}");
                let user = user.unwrap_or_default();
                (format!("{scheme}://{user}{host}{path}{}", query.unwrap_or_default()), plain)
            },
        )
    }

    proptest! {
        #[test]
        fn no_spelling_shows_a_secret((url, plain) in spelling()) {
            let text = shown(Path::new(&url)).to_string_lossy().into_owned();
            prop_assert!(!text.contains("SECRET"), "{}", text);
            prop_assert_eq!(&text, &plain);
            let error = crate::Error::config("wrong").path(&url);
            let texts = [error.to_string(), format!("{error:?}"), file_name(Path::new(&url)).into_owned()];
            prop_assert!(!texts.concat().contains("SECRET"), "{:?}", texts);
            // A URL that may be shown whole is shown whole.
            prop_assert_eq!(shown(Path::new(&plain)), Path::new(&plain));
        }
    }

    #[test]
    fn shards_are_found_where_no_name_ends_as_it_should() {
        let found = |names: &[&'static str]| of_endings(names.to_vec(), &[".array_record"], |name| name);
        assert_eq!(
            found(&["b.array_record", "x-00000-of-00002", "a.array_record"]),
            ["b.array_record", "a.array_record"]
        );
        let shards = ["t.array_record-00000-of-00002", "t.array_record-00001-of-00002"];
        assert_eq!(found(&["features.json", shards[0], shards[1], ".t.array_record-00000-of-00001"]), shards);
        assert_eq!(found(&["t.array_record-0-of-2", "t.array_record-00000-of-", "t.json-00000-of-00001"]), [""; 0]);
        assert_eq!(unsharded("t.tfrecord-00000-of-00002"), Some("t.tfrecord"));
    }
}
