//! The page of a gateway, which shows `/stats.json` and `/history`.

use std::sync::LazyLock;

use crate::page::Page;

const OWN: [&str; 3] =
    [include_str!("page/page.html"), include_str!("page/page.css"), include_str!("page/page.js")];

pub static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let [body, style, script] = OWN;
    Page::new("Gateway", body, style, script)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_small_file_that_asks_no_other_machine() {
        crate::page::check(&PAGE, OWN);
    }
}
