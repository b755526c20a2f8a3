"""The systemctl of a fake machine, as the text of a Python program: it starts mounts and services from unit files.

Like systemd, it knows a unit as it was when daemon-reload last ran, starts what a unit requires before it, and fails a
unit whose requirement or command fails. It starts nothing with --no-block, which tells nobody whether a start worked.
"""

SYSTEMD = """
import configparser, json, os, subprocess, sys
from pathlib import Path

root = Path(os.environ["ROOT"])
files, state = root / "etc/systemd/system", root / "systemd"


def lines(name):
    return (state / name).read_text().split()


def add(name, unit):
    if unit not in lines(name):
        with (state / name).open("a") as file:
            file.write(unit + "\\n")


def parse(path):
    found = {}
    section = ""
    for line in path.read_text().splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif "=" in line and line[0] not in "#;":
            key, _, value = line.partition("=")
            found.setdefault(section, {}).setdefault(key, []).append(value)
    return found


def reload():
    units = {}
    for path in sorted(files.iterdir()):
        if path.is_file():
            units[path.name] = parse(path)
    for folder in sorted(files.glob("*.d")):
        unit = units.get(folder.name[:-2])
        for path in sorted(folder.iterdir()) if unit is not None else ():
            for section, keys in parse(path).items():
                for key, values in keys.items():
                    merged = unit.setdefault(section, {})
                    merged[key] = merged.get(key, []) + values
    (state / "units").write_text(json.dumps(units))


def start(name, starting=()):
    if name.endswith(".target") or name in lines("active"):
        return 0
    unit = json.loads((state / "units").read_text()).get(name)
    if unit is None or name in starting:
        return 5
    for path in unit.get("Unit", {}).get("ConditionPathExists", []):
        if not Path(path).exists():
            return 0
    for line in unit.get("Unit", {}).get("Requires", []):
        for required in line.split():
            if start(required, (*starting, name)):
                return 1
    if name.endswith(".timer"):
        add("active", name)
    elif name.endswith(".mount"):
        mount = {key: values[-1] for key, values in unit["Mount"].items()}
        os.makedirs(mount["Where"], exist_ok=True)
        command = ["mount", "-t", mount["Type"], "-o", mount["Options"], mount["What"], mount["Where"]]
        if subprocess.run(command).returncode:
            return 1
        add("active", name)
    else:
        service = unit["Service"]
        for line in service.get("ExecStartPre", []) + service.get("ExecStart", []):
            command = line.lstrip("-").replace(str(root / "usr/sbin"), str(root / "bin"))
            if subprocess.run(["bash", "-fc", command]).returncode and not line.startswith("-"):
                return 1
        if service.get("Type") != ["oneshot"] or service.get("RemainAfterExit") == ["yes"]:
            add("active", name)
    started(name)
    return 0


def started(name):
    units = json.loads((state / "units").read_text())
    for other in lines("enabled"):
        if name in " ".join(units.get(other, {}).get("Install", {}).get("WantedBy", [])).split():
            start(other)


def boot():
    units = json.loads((state / "units").read_text())
    for unit in ("dlami-nvme.service", *lines("enabled")):
        wanted = " ".join(units.get(unit, {}).get("Install", {}).get("WantedBy", []))
        if unit in units and (not wanted or ".target" in wanted):
            start(unit)


arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
action, names = arguments[0], arguments[1:]
if action == "daemon-reload":
    reload()
elif action == "boot":
    boot()
elif action == "show":
    units = json.loads((state / "units").read_text())
    print("loaded" if names[0] in units else "not-found")
elif action == "is-active":
    sys.exit(0 if names[0] in lines("active") else 3)
elif action == "enable":
    reload()
    if names[0] not in json.loads((state / "units").read_text()):
        sys.exit(1)
    add("enabled", names[0])
    if "--now" in sys.argv:
        sys.exit(start(names[0]))
elif action == "start" and "--no-block" not in sys.argv:
    sys.exit(start(names[0]))
"""
