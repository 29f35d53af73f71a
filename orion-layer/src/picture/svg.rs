//! The few elements of SVG that pictures are made of.
use std::fmt::{self, Display, Write};

/// A picture that is being drawn, in units of pixels.
pub(super) struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Where a text is fixed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn new() -> Svg {
        Svg { body: String::new(), width: 0.0, height: 0.0 }
    }

    fn grow(&mut self, x: f64, y: f64) {
        (self.width, self.height) = (self.width.max(x), self.height.max(y));
    }

    /// A filled rectangle, with a text that readers show under the pointer.
    pub(super) fn rect(&mut self, at: Rect, fill: &str, title: &str) {
        let Rect { x, y, width, height } = at;
        self.grow(x + width, y + height);
        let _ = writeln!(
            self.body,
            "<rect x='{}' y='{}' width='{}' height='{}' fill='{fill}'><title>{}</title></rect>",
            Number(x),
            Number(y),
            Number(width),
            Number(height),
            Escaped(title)
        );
    }

    /// An empty frame.
    pub(super) fn frame(&mut self, Rect { x, y, width, height }: Rect) {
        self.grow(x + width, y + height);
        let _ = writeln!(
            self.body,
            "<rect x='{}' y='{}' width='{}' height='{}' fill='none' stroke='#888'/>",
            Number(x),
            Number(y),
            Number(width),
            Number(height)
        );
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, size: f64, text: &str) {
        // Two thirds of the size are enough for a letter of most fonts.
        let width = text.chars().count() as f64 * size * 0.66;
        let (anchor, right) = match anchor {
            Anchor::Start => ("start", x + width),
            Anchor::Middle => ("middle", x + width / 2.0),
            Anchor::End => ("end", x),
        };
        self.grow(right, y + size / 2.0);
        let _ = writeln!(
            self.body,
            "<text x='{}' y='{}' font-size='{}' text-anchor='{anchor}'>{}</text>",
            Number(x),
            Number(y),
            Number(size),
            Escaped(text)
        );
    }
}

impl Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = ((self.width + MARGIN).ceil(), (self.height + MARGIN).ceil());
        writeln!(
            f,
            "<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}' \
             font-family='sans-serif' fill='#222'>"
        )?;
        writeln!(f, "<rect width='{width}' height='{height}' fill='#fff'/>")?;
        f.write_str(&self.body)?;
        writeln!(f, "</svg>")
    }
}

const MARGIN: f64 = 12.0;

/// A coordinate with two digits behind the point, and none that say nothing.
struct Number(f64);

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.2}", self.0);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '&' => f.write_str("&amp;"),
            '\'' => f.write_str("&#39;"),
            '"' => f.write_str("&quot;"),
            other => f.write_char(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_numbers_short() {
        let mut svg = Svg::new();
        svg.text((1.0, 2.5), Anchor::Start, 10.0, "a<b> & 'c'");
        svg.rect(Rect { x: 0.0, y: 1.0 / 3.0, width: 100.0, height: 7.0 }, "#000", "t");
        let text = svg.to_string();
        assert!(text.contains(">a&lt;b&gt; &amp; &#39;c&#39;</text>"), "{text}");
        assert!(text.contains("<rect x='0' y='0.33' width='100' height='7' fill='#000'>"), "{text}");
        assert!(text.contains("viewBox='0 0 112 20'"), "{text}");
    }
}
