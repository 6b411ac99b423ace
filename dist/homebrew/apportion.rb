# The formula of Homebrew; `dist/recipes` fills in what has an @ on both sides.
class Apportion < Formula
  desc "Divide a link's bandwidth among flows: queue disciplines and TCP in a simulator"
  homepage "https://pypi.org/project/apportion/"
  url "https://files.pythonhosted.org/packages/source/a/apportion/apportion-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license any_of: ["Apache-2.0", "MIT"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
    generate_completions_from_executable(bin/"apportion", "completions")
  end

  test do
    system bin/"apportion", "run", "quickstart", "--quiet", "--out", "results"
    assert_path_exists testpath/"results/1/report.html"
  end
end
