-- The health of a DeploymentGrid, StatefulSetGrid or ServiceGrid for Argo CD. docs/grids.md says how
-- to install it. It reads only what Grids have: obj.status.conditions.

local health = {status = "Progressing", message = "the controller has not seen the last change yet"}

local status = obj.status
if status == nil or status.conditions == nil then
  return health
end

local conditions = {}
for _, condition in ipairs(status.conditions) do
  conditions[condition.type] = condition
end
local function is(type)
  return conditions[type] ~= nil and conditions[type].status == "True"
end
if is("Idle") then -- another cluster expands it, and writes the rest of its status
  return {status = "Healthy", message = conditions.Idle.message}
end
local ready = conditions.Ready
if ready == nil or status.observedGeneration ~= obj.metadata.generation then
  return health
end

health.message = ready.message
if is("Stalled") then
  health.status, health.message = "Degraded", conditions.Stalled.message
elseif is("Reconciling") then
  health.status, health.message = "Progressing", conditions.Reconciling.message
elseif is("DeletionHeld") then -- most units have gone, or the key was changed: a user has to look
  health.status, health.message = "Degraded", conditions.DeletionHeld.message
elseif is("Rekeyed") then
  health.status, health.message = "Degraded", conditions.Rekeyed.message
elseif ready.status == "True" then -- also with offline units, which the message names
  health.status = "Healthy"
  if is("Degraded") then
    health.message = ready.message .. "; " .. conditions.Degraded.message
  end
elseif ready.status == "Unknown" then -- no unit has a ready Node: it waits for Nodes
  health.status = "Suspended"
end
return health
