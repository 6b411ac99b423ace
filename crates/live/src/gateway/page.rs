//! The page of a gateway: one file without any other, which shows `/stats.json` and `/history`.
//!
//! Its [`policy`] lets the browser run these scripts and styles, fetch from this gateway, and nothing else (Content Security
//! Policy Level 3, section 2.3.1: hashes of what is inline). Charts are drawn by uPlot 1.6.32 (MIT, Leon Sorokin).

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

macro_rules! script {
    () => {
        concat!(
            "/*\n",
            include_str!("page/uPlot-LICENSE"),
            "*/\n",
            include_str!("page/uPlot-1.6.32.min.js"),
            "\n",
            include_str!("page/page.js")
        )
    };
}

macro_rules! style {
    () => {
        concat!(include_str!("page/uPlot-1.6.32.min.css"), "\n", include_str!("page/page.css"))
    };
}

/// The page.
pub const PAGE: &str = concat!(
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Gateway</title>\n",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><link rel=\"icon\" href=\"data:,\">\n",
    "<style>",
    style!(),
    "</style></head><body>\n",
    include_str!("page/page.html"),
    "<script>",
    script!(),
    "</script></body></html>\n"
);

static POLICY: LazyLock<String> = LazyLock::new(|| {
    let [script, style] = [script!(), style!()].map(|text| base64(&Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// The content security policy of the page.
pub fn policy() -> &'static str {
    &POLICY
}

/// RFC 4648 section 4.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        // Section 10.
        let vectors = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (text, expected) in vectors {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }

    #[test]
    fn the_page_is_one_small_file_that_asks_no_other_machine() {
        // uPlot is 51 kB of it.
        assert!(PAGE.len() < 80_000, "{}", PAGE.len());
        assert_eq!(PAGE.matches("</script>").count(), 1, "it would end the script early");
        let own =
            [include_str!("page/page.js"), include_str!("page/page.css"), include_str!("page/page.html")];
        assert!(own.iter().all(|text| !text.contains("//www") && !text.contains("http")));
        // The licence goes with every copy.
        assert!(PAGE.contains("(v1.6.32)") && PAGE.contains("Copyright (c) 2022 Leon Sorokin"));
        assert!(!PAGE.contains(" style=\"") && !PAGE.contains(" onclick="));
    }
}
