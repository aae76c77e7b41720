// Package packaging contains the systemd units, the Prometheus alert rules, the Grafana dashboard and the
// sources of the Debian packages (scripts/packages). Its only code is tests of the packages and of the
// documents for installation, operation and use, whose commands run on a test machine.
package packaging
