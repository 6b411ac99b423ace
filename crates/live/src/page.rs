//! Pages for browsers: each is one file that loads no other, and fetches the data that it shows from its own
//! address.
//!
//! The policy of a page lets the browser run its script and style, fetch from the same address, and nothing
//! else (Content Security Policy Level 3, section 2.3.1: hashes of inline parts). Figures are those of reports,
//! drawn from data that arrive.

use apportion_report::explore::{FIGURE_STYLE, live_script, squeezed};
use sha2::{Digest as _, Sha256};

use crate::http::Answer;

/// A page with its policy.
#[derive(Debug)]
pub struct Page {
    html: String,
    policy: String,
}

impl Page {
    /// A page with this title, body, style and script. The script of figures, the colours and the helpers of both
    /// scripts are added.
    pub fn new(title: &str, body: &str, style: &str, script: &str) -> Self {
        let [body, style, script, kit, base] =
            [body, style, script, include_str!("page/kit.js"), include_str!("page/base.css")].map(squeezed);
        let figures = live_script(["var(--text)", "var(--quiet)", "var(--line)"]);
        let script = format!("\"use strict\";\n{figures}{kit}{script}");
        let style = format!("{FIGURE_STYLE}{base}{style}");
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><link rel=\"icon\" href=\"data:,\">\n\
             <style>{style}</style></head><body>\n{body}<script>{script}</script></body></html>\n"
        );
        let [script, style] = [script, style].map(|text| base64(&Sha256::digest(text)));
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; img-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        Self { html, policy }
    }

    /// The page as it is sent.
    #[cfg(test)]
    pub fn html(&self) -> &str {
        &self.html
    }

    /// The page as an answer, with its policy.
    pub fn answer(&'static self) -> Answer {
        Answer {
            status: 200,
            kind: "text/html; charset=utf-8",
            policy: Some(&self.policy),
            body: self.html.clone(),
        }
    }
}

/// Encodes as Base64 (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let six = bits >> (18 - 6 * at) & 63;
            text.push(if at <= three.len() { char::from(ALPHABET[six as usize]) } else { '=' });
        }
    }
    text
}

/// Checks that a page is small, complete, and loads nothing from other machines; `own` are its own parts.
#[cfg(test)]
pub fn check(page: &Page, own: [&str; 3]) {
    let html = page.html();
    assert!(html.len() < 60_000, "{}", html.len());
    assert_eq!(html.matches("</script>").count(), 1, "it would end the script early");
    let shared = [include_str!("page/kit.js"), include_str!("page/base.css")];
    assert!(own.iter().chain(&shared).all(|text| !text.contains("//www") && !text.contains("http")));
    let is_whole = |text: &str| text.lines().all(|line| line.matches('`').count() % 2 == 0);
    assert!(own.into_iter().chain(shared).all(is_whole), "a string that goes on over a line loses blanks");
    assert!(!html.contains(" style=\"") && !html.contains(" onclick="));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        // RFC 4648 section 10.
        let vectors = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (text, expected) in vectors {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
