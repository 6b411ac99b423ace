//! HTML text: escaping and tables.

use std::fmt::Write;

/// `text` as HTML content or attribute value.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // HTML does not allow control characters; names from files could hold some.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A table: the first column heads the rows, the others hold numbers. Cells are text.
#[must_use]
pub fn table(head: &[String], rows: &[Vec<String>]) -> String {
    table_about(head, rows, &[])
}

/// Like [`table`]; the attribute `data-of` of each row is its group, by which figures find the rows of a series.
pub(crate) fn table_about(head: &[String], rows: &[Vec<String>], groups: &[&str]) -> String {
    let mut out = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    for cell in head {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(cell));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (at, row) in rows.iter().enumerate() {
        let _ = match groups.get(at) {
            Some(group) => write!(out, "<tr data-of=\"{}\">", escape(group)),
            None => write!(out, "<tr>"),
        };
        for (c, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ = match c {
                0 => write!(out, "<th scope=\"row\">{cell}</th>"),
                _ => write!(out, "<td>{cell}</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}

/// Head and rows without columns other than the first whose cells all say nothing.
pub(crate) fn informative(
    head: &[String],
    rows: &[Vec<String>],
    says_nothing: impl Fn(&str) -> bool,
) -> (Vec<String>, Vec<Vec<String>>) {
    let is_kept =
        |c: usize| c == 0 || rows.iter().filter_map(|row| row.get(c)).any(|cell| !says_nothing(cell));
    let kept: Vec<usize> = (0..head.len()).filter(|&c| is_kept(c)).collect();
    let keep = |cells: &[String]| kept.iter().filter_map(|&c| cells.get(c).cloned()).collect::<Vec<_>>();
    (keep(head), rows.iter().map(|row| keep(row)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_stays_text() {
        assert_eq!(escape("<a href='x'>&\"\u{1}"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}");
    }
}
