// Package packaging has what is around the program: units of systemd, alert rules, a dashboard, and what
// Debian packages are made of (scripts/packages). It has no code but tests: of the packages, and of the
// documents for those who install, operate and use Headgate, on a machine of their own.
package packaging
